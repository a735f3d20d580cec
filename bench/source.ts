/** The bytes that are uploaded: random ones in a file in memory where the machine has a tmpfs, and a sparse file for the largest. */
import { createHash, randomFillSync } from "node:crypto";
import { closeSync, openSync, readSync, truncateSync, writeSync } from "node:fs";
import { join } from "node:path";

export interface Source {
  readonly path: string;
  readonly bytes: number;
  /** As a `Repr-Digest` header field tells it. */
  readonly digest: string;
}

const pieceBytes = 8 << 20;

export function makeSource(dir: string, bytes: number): Source {
  const path = join(dir, "source.bin");
  const hash = createHash("sha256");
  const file = openSync(path, "w");
  const piece = Buffer.allocUnsafe(Math.min(pieceBytes, bytes));
  for (let at = 0; at < bytes; at += piece.length) {
    const part = piece.subarray(0, Math.min(piece.length, bytes - at));
    randomFillSync(part);
    hash.update(part);
    writeSync(file, part, 0, part.length, at);
  }
  closeSync(file);
  return { path, bytes, digest: `sha-256=:${hash.digest("base64")}:` };
}

/** As much as the file says, and next to no memory. */
export function makeSparse(dir: string, bytes: number): string {
  const path = join(dir, "sparse.bin");
  closeSync(openSync(path, "w"));
  truncateSync(path, bytes);
  return path;
}

export function readSlice(source: Source, offset: number, bytes: number): Buffer {
  const file = openSync(source.path, "r");
  const slice = Buffer.alloc(bytes);
  readSync(file, slice, 0, bytes, offset);
  closeSync(file);
  return slice;
}
