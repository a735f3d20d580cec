/** Cuts windows of UTF-8 text out of bytes without ever splitting a character. */
import { isUtf8 } from "node:buffer";

export type TextWindow =
  | { readonly kind: "text"; readonly text: string; readonly bytes: number }
  /** The start is inside a character, which begins this many bytes before it. */
  | { readonly kind: "inside"; readonly back: number }
  | { readonly kind: "binary" };

/** Bytes that must be at hand before and after a window: a character has at most four. */
export const marginBytes = 3;

/** Control characters grow sixfold in JSON; a window of nothing else would be six times the result that it may be. */
const longestJson = 12_300;

/**
 * The text of at most `length` bytes from `start` on, at least one character. `bytes` holds `marginBytes` more on both sides, as
 * far as the file has them.
 */
export function textWindow(bytes: Buffer, start: number, length: number): TextWindow {
  if (start === bytes.length) return { kind: "text", text: "", bytes: 0 };
  if (continues(bytes[start])) {
    const lead = boundaryBefore(bytes, start);
    const known = bytes.subarray(lead, boundaryAfter(bytes, start));
    return isUtf8(known) ? { kind: "inside", back: start - lead } : { kind: "binary" };
  }
  let end = Math.min(start + length, bytes.length);
  for (;;) {
    end = boundaryBefore(bytes, end);
    if (end <= start) end = boundaryAfter(bytes, start + 1);
    const window = bytes.subarray(start, end);
    if (!isUtf8(window)) return { kind: "binary" };
    const text = window.toString("utf8");
    if (JSON.stringify(text).length <= longestJson) return { kind: "text", text, bytes: window.length };
    end = start + Math.floor(window.length / 2);
  }
}

function boundaryBefore(bytes: Buffer, position: number): number {
  let at = position;
  while (at > 0 && position - at < marginBytes && continues(bytes[at])) at -= 1;
  return at;
}

function boundaryAfter(bytes: Buffer, position: number): number {
  let at = position;
  while (at < bytes.length && at - position < marginBytes && continues(bytes[at])) at += 1;
  return at;
}

/** True for the second to fourth byte of a character; the end of the bytes is a boundary. */
function continues(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0b1100_0000) === 0b1000_0000;
}
