/** `Range` of a GET (RFC 9110 section 14.2): parsed, judged against the size, and kept from being abused. */

/** From `start` to `end`, exclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** More than this many in one request is ignored: nobody needs them, and each costs a part header and a seek. */
const maxRanges = 32;
/** Two ranges with a smaller gap are sent as one: the gap costs less than a part of its own. */
const mergeGapBytes = 128;

const rangeForm = /^(?:([0-9]+)-([0-9]*)|-([0-9]+))$/;

function rangeIn(text: string, size: number): ByteRange | "unsatisfiable" | null {
  const [, first, last, suffix] = rangeForm.exec(text) ?? [];
  if (suffix !== undefined) {
    const length = Number(suffix);
    return length === 0 || size === 0 ? "unsatisfiable" : { start: Math.max(0, size - length), end: size };
  }
  if (first === undefined) return null;
  const start = Number(first);
  if (last !== undefined && last !== "" && Number(last) < start) return null;
  if (start >= size) return "unsatisfiable";
  const end = last === undefined || last === "" ? size : Math.min(size, Number(last) + 1);
  return { start, end };
}

/** Overlapping and neighbouring ranges become one, in the place of the first of them. */
function merged(ranges: readonly ByteRange[]): ByteRange[] {
  const inOrder = ranges.map((range, rank) => ({ ...range, rank })).sort((a, b) => a.start - b.start);
  const kept: { start: number; end: number; rank: number }[] = [];
  for (const range of inOrder) {
    const previous = kept.at(-1);
    if (previous !== undefined && range.start <= previous.end + mergeGapBytes) {
      previous.end = Math.max(previous.end, range.end);
      previous.rank = Math.min(previous.rank, range.rank);
    } else kept.push(range);
  }
  return kept.sort((a, b) => a.rank - b.rank).map(({ start, end }) => ({ start, end }));
}

/**
 * The ranges to send, in order; null where the field does not count (unknown unit, bad form, too many) and the whole file is
 * sent; `unsatisfiable` where no range touches the file.
 */
export function parseRange(text: string, size: number): ByteRange[] | "unsatisfiable" | null {
  const [unit = "", set, ...rest] = text.split("=");
  if (unit.trim().toLowerCase() !== "bytes" || set === undefined || rest.length > 0) return null;
  const pieces = set.split(",").map((piece) => piece.trim());
  if (pieces.length > maxRanges) return null;
  const ranges: ByteRange[] = [];
  for (const piece of pieces) {
    const range = rangeIn(piece, size);
    if (range === null) return null;
    if (range !== "unsatisfiable") ranges.push(range);
  }
  return ranges.length === 0 ? "unsatisfiable" : merged(ranges);
}
