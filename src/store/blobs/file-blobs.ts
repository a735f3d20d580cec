/**
 * Blobs as files: `<data>/blobs/<c>/<name>`, where c is the last character of the handle in the name. Owns opening, gathered writing, syncing of files and of the folders
 * that name them, and the translation of the disk's faults. See `transfer/blob-store.ts` for the promises.
 *
 * A file is only ever appended to by the one writer that created it, never overwritten or renamed, and cut only behind everything
 * that a commit has named. The 32 folders are made once at opening, so a write never waits for one.
 */
import fs from "node:fs";
import { opendir, stat as statFile, unlink } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { TransferError } from "../../errors.ts";
import type { BlobReader, BlobStat, BlobStore, BlobWriter } from "../../transfer/blob-store.ts";
import { isBlobName } from "../../transfer/identifiers.ts";
import { KeptFiles, type ReadableFile } from "./kept-files.ts";

const openFile = promisify(fs.open);
const closeFile = promisify(fs.close);
const syncFile = promisify(fs.fsync);
const truncateFile = promisify(fs.ftruncate);
const syncData = promisify(fs.fdatasync);
const statSystem = promisify(fs.statfs);

const shards = "abcdefghijklmnopqrstuvwxyz234567";
/** Buffers in one writev: IOV_MAX of Linux, macOS and the BSDs. */
const maxPieces = 1024;
const freeCacheMs = 1000;

/** Names begin with a time, so it is their last random character that spreads them evenly. */
function shardOf(name: string): string {
  return name.charAt(31);
}

export interface FileBlobOptions {
  /** Folder; made where it does not exist. */
  readonly dir: string;
  readonly fsync: "always" | "never";
}

/** A fault of the disk as an error of the catalogue. */
export function diskError(cause: unknown): TransferError {
  if (cause instanceof TransferError) return cause;
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  if (code === "ENOSPC" || code === "EDQUOT" || code === "EFBIG") {
    return new TransferError("storage_full", "The disk is full.", { cause, retryAfterSeconds: 30 });
  }
  return new TransferError("storage_unavailable", "The disk does not answer as it should.", {
    cause,
    retryAfterSeconds: 5,
  });
}

async function guarded<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw diskError(cause);
  }
}

/** Syncs a folder for any number of callers at once: those that come while one runs share the next. */
class FolderSync {
  /** Syncs that failed. What they lost the next one does not bring back, though it succeeds. */
  failures = 0;
  readonly #dir: string;
  #fd: number | null = null;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  constructor(dir: string) {
    this.#dir = dir;
  }

  request(): Promise<void> {
    if (this.#running === null) {
      this.#running = this.#sync();
      return this.#running;
    }
    // The one under way may have begun before the caller's name was made; only the next is sure to hold it.
    this.#next ??= this.#running.then(
      () => this.#startNext(),
      () => this.#startNext(),
    );
    return this.#next;
  }

  #startNext(): Promise<void> {
    this.#next = null;
    this.#running = this.#sync();
    return this.#running;
  }

  async #sync(): Promise<void> {
    try {
      this.#fd ??= await openFile(this.#dir, "r");
      await syncFile(this.#fd);
    } catch (error) {
      this.failures += 1;
      throw error;
    } finally {
      if (this.#next === null) this.#running = null;
    }
  }

  /** To be called when nothing is written any more. */
  async close(): Promise<void> {
    const fd = this.#fd;
    this.#fd = null;
    if (fd !== null) await closeFile(fd);
  }
}

function writeGathered(fd: number, pieces: readonly Uint8Array[], position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const done = (error: Error | null, written: number) => (error ? reject(error) : resolve(written));
    const only = pieces.length === 1 ? pieces[0] : undefined;
    if (only !== undefined) fs.write(fd, only, 0, only.byteLength, position, done);
    else fs.writev(fd, pieces as Uint8Array[], position, done);
  });
}

class FileWriter implements BlobWriter {
  readonly #fd: number;
  readonly #folder: FolderSync | null;
  /** When the name was made. */
  readonly #folderFailures: number;
  #nameSynced = false;

  constructor(fd: number, folder: FolderSync | null, folderFailures: number) {
    this.#fd = fd;
    this.#folder = folder;
    this.#folderFailures = folderFailures;
  }

  async write(pieces: readonly Uint8Array[], position: number): Promise<void> {
    try {
      let rest = pieces;
      let at = position;
      while (rest.length > 0) {
        const batch = rest.length > maxPieces ? rest.slice(0, maxPieces) : rest;
        const bytes = batch.reduce((sum, piece) => sum + piece.byteLength, 0);
        const written = await writeGathered(this.#fd, batch, at);
        at += written;
        // writev may return short without an error, on a disk that just became full above all: the next call says why.
        if (written === bytes) rest = rest.length > batch.length ? rest.slice(batch.length) : [];
        else if (written === 0 && bytes > 0)
          throw Object.assign(new Error("nothing written"), { code: "ENOSPC" });
        else rest = without(rest, written);
      }
    } catch (cause) {
      throw diskError(cause);
    }
  }

  async sync(): Promise<void> {
    if (this.#folder === null) return;
    if (this.#nameSynced) return guarded(syncData(this.#fd));
    await guarded(Promise.all([syncData(this.#fd), this.#folder.request()]));
    // Somebody else's sync of the folder that failed may have been the one that held this name.
    if (this.#folder.failures !== this.#folderFailures)
      throw diskError(new Error("the folder's sync failed"));
    this.#nameSynced = true;
  }

  cut(position: number): Promise<void> {
    return guarded(truncateFile(this.#fd, position));
  }

  close(): Promise<void> {
    return guarded(closeFile(this.#fd));
  }
}

/** What is left of the pieces after their first `bytes`. */
function without(pieces: readonly Uint8Array[], bytes: number): Uint8Array[] {
  const rest: Uint8Array[] = [];
  let skip = bytes;
  for (const piece of pieces) {
    if (skip >= piece.byteLength) skip -= piece.byteLength;
    else {
      rest.push(skip === 0 ? piece : piece.subarray(skip));
      skip = 0;
    }
  }
  return rest;
}

class FileReader implements BlobReader {
  readonly #file: ReadableFile;

  constructor(file: ReadableFile) {
    this.#file = file;
  }

  read(target: Uint8Array, position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      fs.read(this.#file.fd, target, 0, target.byteLength, position, (error, bytes) =>
        error ? reject(diskError(error)) : resolve(bytes),
      );
    });
  }

  close(): Promise<void> {
    return guarded(this.#file.close());
  }
}

export function openFileBlobs({ dir, fsync }: FileBlobOptions): BlobStore {
  const root = path.resolve(dir);
  const folders = new Map<string, FolderSync>();
  const kept = new KeptFiles();
  try {
    for (const shard of shards) {
      fs.mkdirSync(path.join(root, shard), { recursive: true, mode: 0o700 });
      folders.set(shard, new FolderSync(path.join(root, shard)));
    }
    if (fsync === "always") syncFolderSync(root);
  } catch (cause) {
    throw diskError(cause);
  }

  const locate = (name: string): { file: string; folder: FolderSync } => {
    const folder = folders.get(shardOf(name));
    if (folder === undefined || !isBlobName(name))
      throw new TransferError("internal_error", "That is no name of a blob.");
    return { file: path.join(root, shardOf(name), name), folder };
  };
  let free: { bytes: number; at: number } | null = null;

  return {
    async create(name) {
      const { file, folder } = locate(name);
      // Before the name is made: a sync that fails from here on may be its own.
      const { failures } = folder;
      const fd = await guarded(kept.withDescriptors(() => openFile(file, "wx", 0o600)));
      return new FileWriter(fd, fsync === "always" ? folder : null, failures);
    },
    async open(name) {
      return new FileReader(await guarded(kept.open(locate(name).file)));
    },
    async stat(name): Promise<BlobStat | null> {
      try {
        const { size, mtime } = await statFile(locate(name).file);
        return { sizeBytes: size, modifiedAt: mtime };
      } catch (cause) {
        if (isMissing(cause)) return null;
        throw diskError(cause);
      }
    },
    path: (name) => locate(name).file,
    async remove(name) {
      const { file } = locate(name);
      try {
        await unlink(file);
      } catch (cause) {
        if (!isMissing(cause)) throw diskError(cause);
      }
      await guarded(kept.forget(file));
    },
    async *list() {
      let batch: { name: string; modifiedAt: Date }[] = [];
      for (const shard of shards) {
        for await (const item of await guarded(opendir(path.join(root, shard)))) {
          if (!item.isFile() || !isBlobName(item.name)) continue;
          const found = await this.stat(item.name);
          if (found !== null) batch.push({ name: item.name, modifiedAt: found.modifiedAt });
          if (batch.length === 1000) {
            yield batch;
            batch = [];
          }
        }
      }
      if (batch.length > 0) yield batch;
    },
    async close() {
      await kept.close();
      await Promise.all([...folders.values()].map((folder) => folder.close()));
    },
    async freeBytes() {
      const now = performance.now();
      if (free === null || now - free.at > freeCacheMs) {
        const { bavail, bsize } = await guarded(statSystem(root));
        free = { bytes: bavail * bsize, at: now };
      }
      return free.bytes;
    },
  };
}

function isMissing(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && cause.code === "ENOENT";
}

function syncFolderSync(dir: string): void {
  const fd = fs.openSync(dir, "r");
  try {
    fs.fsyncSync(fd);
  } finally {
    fs.closeSync(fd);
  }
}
