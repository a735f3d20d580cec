/** Reads a stream once, piece by piece: the file may be larger than the memory. */

export interface LineStatistics {
  readonly lines: number;
  readonly longestLineBytes: number;
}

const newline = 10;

export async function lineStatistics(stream: AsyncIterable<Buffer>): Promise<LineStatistics> {
  let lines = 0;
  let longest = 0;
  let current = 0;
  for await (const piece of stream) {
    let from = 0;
    for (let at = piece.indexOf(newline); at !== -1; at = piece.indexOf(newline, from)) {
      longest = Math.max(longest, current + at - from);
      current = 0;
      lines += 1;
      from = at + 1;
    }
    current += piece.length - from;
  }
  return { lines: current > 0 ? lines + 1 : lines, longestLineBytes: Math.max(longest, current) };
}
