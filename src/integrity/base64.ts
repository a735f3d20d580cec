/**
 * Strict base64 (RFC 4648 section 4): the standard alphabet, padded, no white space, no set bits after the last byte. Each
 * byte string has exactly one text that is accepted, so a text that lost or gained a character on its way is found out.
 */
import { TransferError } from "../errors.ts";

/**
 * The bytes of `text`. `param` names the argument it came in.
 *
 * @throws TransferError `invalid_base64`, which says the position (from 0) of the first fault.
 */
export function decodeBase64(text: string, param: string): Buffer {
  // Node skips what it does not know, so only a text that comes out again unchanged was base64 from end to end.
  const bytes = Buffer.from(text, "base64");
  if (bytes.toString("base64") === text) return bytes;
  const { position, reason } = firstFault(text);
  throw new TransferError("invalid_base64", `${param} is not valid base64: ${reason}`, {
    param,
    extra: { position },
  });
}

function firstFault(text: string): { position: number; reason: string } {
  const stranger = text.search(/[^A-Za-z0-9+/]/);
  const end = text.length;
  if (stranger !== -1 && !/^={1,2}$/.test(text.slice(stranger))) {
    return {
      position: stranger,
      reason: `${named(text, stranger)} at position ${stranger} does not belong there.`,
    };
  }
  if (end % 4 !== 0) {
    return {
      position: end,
      reason: `it has ${end} characters, which is no multiple of 4, so something is missing or too much.`,
    };
  }
  const last = stranger - 1;
  return {
    position: last,
    reason: `${named(text, last)} at position ${last} has bits set beyond the last byte.`,
  };
}

function named(text: string, position: number): string {
  const point = text.codePointAt(position) ?? 0;
  return point > 0x20 && point < 0x7f
    ? `the character "${String.fromCodePoint(point)}"`
    : `the character U+${point.toString(16).toUpperCase().padStart(4, "0")}`;
}
