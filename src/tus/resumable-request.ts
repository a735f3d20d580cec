/** What a request of Resumable Uploads for HTTP says of the file and of its own body. */
import { TransferError } from "../errors.ts";
import type { Exchange } from "./exchange.ts";
import type { BodyLength } from "./request-body.ts";
import { inconsistentLength } from "./resumable-problems.ts";
import { readCount, readUploadComplete } from "./resumable-protocol.ts";

/** `Upload-Complete`, which every request that brings bytes must have. */
export function requireComplete(exchange: Exchange): boolean {
  const complete = readUploadComplete(exchange);
  if (complete !== null) return complete;
  throw new TransferError("invalid_param", "Upload-Complete is missing.", {
    param: "Upload-Complete",
    recoveryHint:
      "Send 'Upload-Complete: ?1' where the file ends with this request, and '?0' where more follows.",
  });
}

/** Bytes of the body, where the header tells; null for a body in chunks. */
export function bodyBytesOf(length: BodyLength): number | null {
  if (length.kind === "chunked") return null;
  return length.kind === "known" ? length.bytes : 0;
}

/**
 * Size of the whole file as far as this request tells it (section "Length"): `Upload-Length`, or where the body ends the file. Throws
 * where both are there and differ.
 */
export function announcedLength(
  exchange: Exchange,
  body: { readonly offset: number; readonly complete: boolean; readonly bytes: number | null },
): number | null {
  const stated = readCount(exchange, "upload-length");
  const implied = body.complete && body.bytes !== null ? body.offset + body.bytes : null;
  if (stated !== null && implied !== null && stated !== implied) {
    throw inconsistentLength(
      `Upload-Length is ${stated}, but the body of this last request ends at ${implied}.`,
    );
  }
  return stated ?? implied;
}
