/** What a server has really stored: compared with what was sent, so that none wins by dropping bytes, and removed after each run. */
import { closeSync, openSync, readdirSync, readSync, statSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import type { RunningServer } from "./processes.ts";
import type { Source } from "./source.ts";

export interface Slice {
  readonly offset: number;
  readonly bytes: number;
}

const pieceBytes = 4 << 20;
const left = Buffer.allocUnsafe(pieceBytes);
const right = Buffer.allocUnsafe(pieceBytes);

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function isSame(path: string, source: number, slice: Slice): boolean {
  const file = openSync(path, "r");
  try {
    for (let at = 0; at < slice.bytes; at += pieceBytes) {
      const length = Math.min(pieceBytes, slice.bytes - at);
      const got = readSync(file, left, 0, length, at);
      readSync(source, right, 0, length, slice.offset + at);
      if (got !== length || left.compare(right, 0, length, 0, length) !== 0) return false;
    }
    return true;
  } finally {
    closeSync(file);
  }
}

/**
 * Throws unless the server has a file of its own for each of these slices of the source.
 * @param copies how many files there must be of each slice.
 */
export function checkStored(
  server: RunningServer,
  source: Source,
  slices: readonly Slice[],
  copies = 1,
): void {
  const { storedIn, label } = server.kind;
  if (storedIn === null) return;
  const sizes = new Set(slices.map(({ bytes }) => bytes));
  const files = filesBelow(join(server.dir, storedIn)).filter((path) => sizes.has(statSync(path).size));
  const file = openSync(source.path, "r");
  try {
    let correct = 0;
    // Servers that name files themselves do not say which is which; the first that is the same is the one.
    const open = new Map(slices.map((slice) => [slice, copies]));
    for (const path of files) {
      for (const [slice, count] of open) {
        if (count === 0 || !isSame(path, file, slice)) continue;
        open.set(slice, count - 1);
        correct += 1;
        break;
      }
    }
    if (correct !== slices.length * copies)
      throw new Error(`${label} stored ${correct} of ${slices.length * copies} files as they were sent`);
  } finally {
    closeSync(file);
  }
}

/** Makes room: the records stay, the bytes go. */
export function dropStored(server: RunningServer): void {
  const { storedIn } = server.kind;
  if (storedIn === null) return;
  for (const path of filesBelow(join(server.dir, storedIn))) unlinkSync(path);
}
