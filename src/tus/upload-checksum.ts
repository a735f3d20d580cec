/**
 * `Upload-Checksum` (tus 1.0.0, Checksum): digest of one request's body, in the header or in the trailer of a body in chunks. Wrong
 * bytes answer 460 and leave the offset where it was.
 */
import { TransferError } from "../errors.ts";
import type { Checksum, ChecksumAlgorithm, LateChecksum } from "../transfer/engine.ts";
import { readContentDigest } from "./digest-fields.ts";
import type { Exchange } from "./exchange.ts";

/** As tus names them, with the length of their digests in bytes. */
const digestBytes = { sha256: 32, sha1: 20, md5: 16, crc32c: 4 } as const satisfies Partial<
  Record<ChecksumAlgorithm, number>
>;
type TusAlgorithm = keyof typeof digestBytes;

const algorithms: readonly TusAlgorithm[] = ["sha256", "sha1", "md5", "crc32c"];
/** `Tus-Checksum-Algorithm`, the best first. */
export const checksumAlgorithms = algorithms.join(",");

const field = "Upload-Checksum";
const base64Form = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function refuse(message: string): TransferError {
  return new TransferError("invalid_param", message, {
    param: field,
    recoveryHint:
      "Send 'Upload-Checksum: ALGORITHM BASE64' with the digest of the bytes of this request, or leave it out.",
  });
}

/** Throws `unsupported_checksum` for an algorithm that is not known, `invalid_param` for everything else that is no checksum. */
function parseUploadChecksum(text: string): Checksum {
  const [name = "", digest, ...rest] = text.split(" ");
  const algorithm = algorithms.find((known) => known === name.toLowerCase());
  if (algorithm === undefined) {
    throw new TransferError("unsupported_checksum", `Checksums may be of ${algorithms.join(", ")}.`, {
      param: field,
    });
  }
  if (digest === undefined || rest.length > 0)
    throw refuse("Upload-Checksum must be an algorithm, a space, and base64.");
  const bytes = Buffer.from(digest, "base64");
  if (!base64Form.test(digest) || bytes.toString("base64") !== digest) {
    throw refuse("The digest of Upload-Checksum is not base64.");
  }
  if (bytes.byteLength !== digestBytes[algorithm]) {
    throw refuse(
      `A digest of ${algorithm} has ${digestBytes[algorithm]} bytes, that of Upload-Checksum ${bytes.byteLength}.`,
    );
  }
  return { algorithm, hex: bytes.toString("hex"), failStatus: 460 };
}

function announcesTrailer(exchange: Exchange): boolean {
  const names = (exchange.header("trailer") ?? "").split(",");
  return names.some((name) => name.trim().toLowerCase() === "upload-checksum");
}

/** Announced in `Trailer` and not there is refused, or a check that a proxy has dropped would pass for one that was made. */
function trailingChecksum(exchange: Exchange): LateChecksum | null {
  if (!announcesTrailer(exchange)) return null;
  return {
    algorithms,
    expected: () => {
      const text = exchange.node?.incoming.trailers["upload-checksum"];
      if (text === undefined) throw refuse("Trailer announces Upload-Checksum, and no such trailer came.");
      return parseUploadChecksum(text.trim());
    },
  };
}

export interface BodyDigests {
  readonly checksums: readonly Checksum[];
  readonly lateChecksum: LateChecksum | null;
}

/** All digests that a tus request announces for its body. */
export function readBodyDigests(exchange: Exchange): BodyDigests {
  const checksum = exchange.header("upload-checksum");
  return {
    checksums: [
      ...(checksum === null ? [] : [parseUploadChecksum(checksum)]),
      ...readContentDigest(exchange),
    ],
    lateChecksum: trailingChecksum(exchange),
  };
}
