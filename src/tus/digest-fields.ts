/** `Content-Digest` and `Repr-Digest` of requests (RFC 9530). Algorithms that are not known here count for nothing. */
import { TransferError } from "../errors.ts";
import type { Checksum } from "../transfer/engine.ts";
import type { Exchange } from "./exchange.ts";
import { byteMembers } from "./structured-fields.ts";

const digestBytes = { "sha-256": 32, "sha-512": 64 } as const;

type Field = "Content-Digest" | "Repr-Digest";

/**
 * Hex of the digests that are understood. A field that is there and cannot be read is refused (`invalid_param`): whoever sends one
 * relies on its being checked.
 */
function readDigests(exchange: Exchange, field: Field): Map<keyof typeof digestBytes, string> {
  const text = exchange.header(field);
  const digests = new Map<keyof typeof digestBytes, string>();
  if (text === null) return digests;
  const members = byteMembers(text);
  if (members === null) throw refuse(field, `${field} is not a dictionary of byte sequences.`);
  for (const algorithm of ["sha-256", "sha-512"] as const) {
    const bytes = members.get(algorithm);
    if (bytes === undefined) continue;
    if (bytes?.byteLength !== digestBytes[algorithm]) {
      throw refuse(
        field,
        `${algorithm} of ${field} must be a byte sequence of ${digestBytes[algorithm]} bytes.`,
      );
    }
    digests.set(algorithm, bytes.toString("hex"));
  }
  return digests;
}

function refuse(field: Field, message: string): TransferError {
  return new TransferError("invalid_param", message, {
    param: field,
    recoveryHint: `Send '${field}: sha-256=:BASE64:', or leave it out.`,
  });
}

/** What the body of this request must be. */
export function readContentDigest(exchange: Exchange): Checksum[] {
  const digests = readDigests(exchange, "Content-Digest");
  return (["sha-256", "sha-512"] as const).flatMap((algorithm) => {
    const hex = digests.get(algorithm);
    if (hex === undefined) return [];
    return [{ algorithm: algorithm === "sha-256" ? "sha256" : "sha512", hex, failStatus: 400 } as const];
  });
}

/** Lower-case hex sha256 that the whole file must have; null where it is not told. */
export function readReprDigest(exchange: Exchange): string | null {
  return readDigests(exchange, "Repr-Digest").get("sha-256") ?? null;
}
