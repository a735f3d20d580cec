/**
 * A byte store whose disk fails when it is told to, over one that does not. It fails as disks do: a write may leave a part behind, and
 * a sync that fails drops what was written since the last one, after which the next sync succeeds (as on Linux).
 */
import { open } from "node:fs/promises";
import { diskError } from "../../src/store/blobs/file-blobs.ts";
import type { BlobReader, BlobStore, BlobWriter } from "../../src/transfer/blob-store.ts";

export type DiskOperation =
  | "create"
  | "write"
  | "sync"
  | "open"
  | "read"
  | "stat"
  | "freeBytes"
  | "cut"
  | "close";
export type DiskFault = "ENOSPC" | "EDQUOT" | "EIO" | "EMFILE";

export interface Failure {
  readonly operation: DiskOperation;
  /** 1: the first of these from now on. */
  readonly nth: number;
  readonly fault: DiskFault;
  /** All from the nth on; default the nth alone. */
  readonly forGood?: boolean;
  /** Of a write: half of it is on the disk all the same. */
  readonly short?: boolean;
}

export class FaultyDisk {
  #failure: Failure | null = null;
  #seen = 0;
  /** Free space that is told; null: what there is. */
  freeBytes: number | null = null;
  /** Faults that were met. */
  met = 0;

  fail(failure: Failure): void {
    this.#failure = failure;
    this.#seen = 0;
    this.met = 0;
  }

  mend(): void {
    this.#failure = null;
  }

  /** The fault that this operation meets now, or null. */
  strike(operation: DiskOperation): Failure | null {
    const failure = this.#failure;
    if (failure?.operation !== operation) return null;
    this.#seen += 1;
    const strikes = this.#seen === failure.nth || (failure.forGood === true && this.#seen > failure.nth);
    if (!strikes) return null;
    this.met += 1;
    return failure;
  }

  async guard<T>(operation: DiskOperation, work: () => Promise<T>): Promise<T> {
    const failure = this.strike(operation);
    if (failure !== null) throw errorOf(failure);
    return work();
  }

  wrap(blobs: BlobStore): BlobStore {
    return {
      create: (name) =>
        this.guard("create", async () => this.#writer(await blobs.create(name), blobs.path(name))),
      open: (name) => this.guard("open", async () => this.#reader(await blobs.open(name))),
      stat: (name) => this.guard("stat", () => blobs.stat(name)),
      freeBytes: () => this.guard("freeBytes", async () => this.freeBytes ?? blobs.freeBytes()),
      path: (name) => blobs.path(name),
      remove: (name) => blobs.remove(name),
      list: () => blobs.list(),
      close: () => blobs.close(),
    };
  }

  #reader(reader: BlobReader): BlobReader {
    return {
      read: (target, position) => this.guard("read", () => reader.read(target, position)),
      close: () => reader.close(),
    };
  }

  #writer(writer: BlobWriter, path: string | null): BlobWriter {
    let unsynced: { readonly from: number; readonly to: number }[] = [];
    return {
      write: async (pieces, position) => {
        const bytes = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
        const failure = this.strike("write");
        if (failure?.short === true) {
          const half = Buffer.concat(pieces).subarray(0, bytes >> 1);
          await writer.write([half], position);
        }
        if (failure !== null) throw errorOf(failure);
        unsynced.push({ from: position, to: position + bytes });
        await writer.write(pieces, position);
      },
      sync: async () => {
        const ranges = unsynced;
        unsynced = [];
        const failure = this.strike("sync");
        if (failure === null) return writer.sync();
        if (path !== null) await forget(path, ranges);
        throw errorOf(failure);
      },
      cut: (position) => this.guard("cut", () => writer.cut(position)),
      close: async () => {
        const failure = this.strike("close");
        await writer.close();
        if (failure !== null) throw errorOf(failure);
      },
    };
  }
}

function errorOf({ fault, operation }: Failure): Error {
  return diskError(Object.assign(new Error(`${fault}: made for a test, ${operation}`), { code: fault }));
}

async function forget(
  path: string,
  ranges: readonly { readonly from: number; readonly to: number }[],
): Promise<void> {
  const file = await open(path, "r+");
  try {
    for (const { from, to } of ranges) await file.write(Buffer.alloc(to - from), 0, to - from, from);
  } finally {
    await file.close();
  }
}
