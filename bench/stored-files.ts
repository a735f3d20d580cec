/**
 * What a server has really stored, as files or (small ones) in its records: compared with what was sent, so that none wins by dropping
 * bytes. Files are removed after each run.
 */
import { closeSync, openSync, readdirSync, readSync, statSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
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

interface Stored {
  readonly bytes: number;
  isSame(source: number, slice: Slice): boolean;
}

function storedFile(path: string): Stored {
  return {
    bytes: statSync(path).size,
    isSame(source, slice) {
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
    },
  };
}

/** Row id of the last small file of earlier runs: a running server's records are not for others to change. */
const lastDropped = new WeakMap<RunningServer, number>();

function smallFiles(server: RunningServer): { readonly row: number; readonly content: Uint8Array }[] {
  const { recordsIn } = server.kind;
  if (recordsIn === null) return [];
  const database = new DatabaseSync(join(server.dir, recordsIn), { readOnly: true, timeout: 5_000 });
  try {
    return database
      .prepare("SELECT rowid, bytes FROM small_file WHERE rowid > ? ORDER BY rowid")
      .all(lastDropped.get(server) ?? 0)
      .map(({ rowid, bytes }) => ({ row: Number(rowid), content: bytes as Uint8Array }));
  } finally {
    database.close();
  }
}

function storedRecord(content: Uint8Array): Stored {
  return {
    bytes: content.length,
    isSame(source, { offset, bytes }) {
      readSync(source, right, 0, bytes, offset);
      return right.compare(content, 0, content.length, 0, bytes) === 0;
    },
  };
}

/**
 * Throws unless the server has stored each of these slices of the source by itself.
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
  const found = [
    ...filesBelow(join(server.dir, storedIn)).map(storedFile),
    ...smallFiles(server).map(({ content }) => storedRecord(content)),
  ].filter(({ bytes }) => sizes.has(bytes));
  const file = openSync(source.path, "r");
  try {
    let correct = 0;
    // Servers that name files themselves do not say which is which; the first that is the same is the one.
    const open = new Map(slices.map((slice) => [slice, copies]));
    for (const stored of found) {
      for (const [slice, count] of open) {
        if (count === 0 || !stored.isSame(file, slice)) continue;
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
  const last = smallFiles(server).at(-1);
  if (last !== undefined) lastDropped.set(server, last.row);
}
