/** Decimal numbers of bytes in header fields: nothing is accepted that two readers could understand differently. */
import { TransferError } from "../errors.ts";

const decimal = /^(?:0|[1-9][0-9]*)$/;

/**
 * A count of bytes: decimal digits without sign, space or leading zeros. What no JavaScript number holds exactly is Infinity.
 * Throws `invalid_param` for everything else.
 */
function parseByteCount(name: string, text: string): number {
  if (!decimal.test(text)) {
    throw new TransferError("invalid_param", `${name} must be a whole number of bytes in decimal digits.`, {
      param: name,
    });
  }
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : Number.POSITIVE_INFINITY;
}

/** A size in bytes. Throws `file_too_large` above 2^53 - 1; the engine knows the limit below that. */
export function readSize(name: string, text: string): number {
  const size = parseByteCount(name, text);
  if (size === Number.POSITIVE_INFINITY) {
    throw new TransferError("file_too_large", `${name} is more than any file may have.`);
  }
  return size;
}

/** A position in bytes, up to 2^53 - 1. */
export function readPosition(name: string, text: string): number {
  const position = parseByteCount(name, text);
  if (position === Number.POSITIVE_INFINITY) {
    throw new TransferError("invalid_param", `${name} is beyond the end of any file.`, { param: name });
  }
  return position;
}
