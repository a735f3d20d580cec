/** Header fields that tell of a transfer, the same on every door. */
import type { Transfer } from "../transfer/engine.ts";

/** `Repr-Digest` (RFC 9530 section 3): the sha256 of the whole file as a structured field. */
function reprDigest(sha256: string): string {
  return `sha-256=:${Buffer.from(sha256, "hex").toString("base64")}:`;
}

/** On every answer on a ticket URL whose transfer is known. */
export function transferHeaders(transfer: Transfer): Record<string, string> {
  return {
    "Longshore-Handle": transfer.handle,
    "Longshore-Status": transfer.status,
    ...(transfer.status === "complete" &&
      transfer.sha256 !== null && { "Repr-Digest": reprDigest(transfer.sha256) }),
  };
}

/** `Upload-Expires` (tus 1.0.0, Expiration) in the form of RFC 9110 section 5.6.7, while the upload is not complete. */
export function expiryHeaders(transfer: Transfer): Record<string, string> {
  if (transfer.status === "complete" || transfer.expiresAt === null) return {};
  return { "Upload-Expires": transfer.expiresAt.toUTCString() };
}

export function offsetHeader(transfer: Transfer): Record<string, string> {
  return { "Upload-Offset": String(transfer.offset) };
}
