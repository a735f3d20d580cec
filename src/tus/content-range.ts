/** `Content-Range` of a request (RFC 9110 section 14.4 and 14.5): which piece of the file a PUT brings. */
import { TransferError } from "../errors.ts";
import { readPosition, readSize } from "./byte-count.ts";

export interface ContentRange {
  /** First byte of the piece. */
  readonly start: number;
  /** First byte after the piece; equal to `start` for a piece of no bytes. */
  readonly end: number;
  /** Size of the whole file; null for `*`. */
  readonly sizeBytes: number | null;
}

const field = "Content-Range";
const form = /^bytes[ \t]+([0-9]+)-(-1|[0-9]+)\/([0-9]+|\*)$/i;

function refuse(message: string): TransferError {
  return new TransferError("invalid_param", message, {
    param: field,
    recoveryHint:
      "Send 'Content-Range: bytes FIRST-LAST/TOTAL' for a piece, or no Content-Range for the whole file.",
  });
}

/**
 * Throws `invalid_param`, or `file_too_large` for a total that no file can have. `LAST` may be one less than `FIRST`: a piece
 * of no bytes. For an empty file that is `bytes 0--1/0`, which curl sends.
 */
export function readContentRange(text: string): ContentRange {
  const match = form.exec(text);
  const [, first, last, total] = match ?? [];
  if (first === undefined || last === undefined || total === undefined) {
    throw refuse("Content-Range must be 'bytes FIRST-LAST/TOTAL'.");
  }
  const sizeBytes = total === "*" ? null : readSize(field, total);
  const start = readPosition(field, first);
  const end = last === "-1" ? 0 : readPosition(field, last) + 1;
  if (end < start) throw refuse("The last byte of Content-Range comes before its first.");
  if (sizeBytes !== null && end > sizeBytes) throw refuse("Content-Range goes beyond its own total.");
  return { start, end, sizeBytes };
}
