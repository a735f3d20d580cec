/**
 * `Upload-Metadata` (tus 1.0.0, Creation): checked, and the few pairs that are understood read from it. The header itself is
 * kept byte for byte, whatever else it says.
 */
import { TransferError } from "../errors.ts";
import type { Exchange } from "./exchange.ts";

export interface UploadMetadata {
  readonly filename: string | null;
  readonly contentType: string | null;
  /** Lower-case hex. */
  readonly sha256: string | null;
}

/** Node allows 16 KiB for all header fields together; half of it is plenty for a name and a type. */
const maxMetadataBytes = 8 << 10;
const maxFilenameBytes = 1024;
const maxContentTypeBytes = 255;

const field = "Upload-Metadata";
// No space, comma or control character. The tus text only says that keys should be ASCII, so other bytes pass.
const keyForm = /^[\x21-\x2b\x2d-\x7e\x80-\xff]+$/;
const base64Form = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const mediaTypeForm =
  /^[!#$%&'*+.^_`|~0-9A-Za-z-]+\/[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:[ \t]*;[ \t]*[!#$%&'*+.^_`|~0-9A-Za-z-]+=(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+|"[\x20\x21\x23-\x5b\x5d-\x7e]*"))*$/;

function refuse(message: string): TransferError {
  return new TransferError("invalid_param", message, {
    param: field,
    recoveryHint:
      "Send 'Upload-Metadata: key base64value,key base64value' with each key once, or leave it out.",
  });
}

/**
 * The pairs in order, values still in base64. A map, not an object: `constructor` and `__proto__` are keys like any other.
 * Throws `invalid_param` for what the specification does not allow, `headers_too_large` above 8 KiB.
 */
export function parseUploadMetadata(text: string): Map<string, string> {
  const pairs = new Map<string, string>();
  if (text.length > maxMetadataBytes) {
    throw new TransferError(
      "headers_too_large",
      `Upload-Metadata may have at most ${maxMetadataBytes} bytes.`,
    );
  }
  if (/^[ \t]*$/.test(text)) return pairs;
  for (const piece of text.split(",")) {
    const [key = "", ...values] = piece.split(/[ \t]+/).filter((word) => word !== "");
    if (!keyForm.test(key)) throw refuse("Upload-Metadata has a pair without a legal key.");
    if (values.length > 1) throw refuse("Upload-Metadata has a pair of more than a key and a value.");
    const value = values[0] ?? "";
    if (!base64Form.test(value)) throw refuse("Upload-Metadata has a value that is not base64.");
    if (pairs.has(key)) throw refuse("Upload-Metadata has the same key twice.");
    pairs.set(key, value);
  }
  return pairs;
}

function textOf(pairs: Map<string, string>, ...keys: string[]): string | null {
  for (const key of keys) {
    const value = pairs.get(key);
    // Bytes that are no UTF-8 become replacement characters: a name is a label here, and the metadata keeps the bytes.
    if (value !== undefined && value !== "") return Buffer.from(value, "base64").toString("utf8");
  }
  return null;
}

/** A name as it is kept, whichever field it came in. Throws `invalid_param` for one that is too long. */
export function keptFilename(name: string): string {
  if (Buffer.byteLength(name) > maxFilenameBytes) {
    throw new TransferError("invalid_param", `The file name has more than ${maxFilenameBytes} bytes.`, {
      param: "filename",
      recoveryHint: "Send a shorter file name.",
    });
  }
  // Control characters would go to terminals and logs, and a database refuses NUL; no name needs them.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  return name.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, "_");
}

/** A media type (RFC 9110 section 8.3.1), or null for what is none. */
export function keptContentType(text: string): string | null {
  const type = text.trim();
  return type.length <= maxContentTypeBytes && mediaTypeForm.test(type) ? type : null;
}

function sha256In(pairs: Map<string, string>): string | null {
  const digest = textOf(pairs, "sha256");
  if (digest === null) return null;
  if (!/^[0-9a-f]{64}$/i.test(digest)) {
    throw new TransferError("invalid_param", "sha256 in Upload-Metadata must be 64 hex digits.", {
      param: "sha256",
      recoveryHint:
        "Send the sha256 of the whole file as 64 hex digits (in base64, as all metadata), or leave it out.",
    });
  }
  return digest.toLowerCase();
}

/** What is understood of the header. Throws as `parseUploadMetadata`, and `invalid_param` for an unusable name or digest. */
export function readUploadMetadata(text: string): UploadMetadata {
  const pairs = parseUploadMetadata(text);
  const filename = textOf(pairs, "filename", "name");
  // `type` is also used for other things than media types; what is none is simply not one.
  const contentType = textOf(pairs, "filetype", "type");
  return {
    filename: filename === null ? null : keptFilename(filename),
    contentType: contentType === null ? null : keptContentType(contentType),
    sha256: sha256In(pairs),
  };
}

/** The field of a request as it came, and what is understood of it. */
export function describedBy(exchange: Exchange): UploadMetadata & { readonly metadata: string | null } {
  const metadata = exchange.header("upload-metadata");
  const described =
    metadata === null ? { filename: null, contentType: null, sha256: null } : readUploadMetadata(metadata);
  return { ...described, metadata };
}
