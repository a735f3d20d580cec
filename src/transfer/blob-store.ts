/**
 * What transfers need of a byte store, and what the store promises. The contract suite in `test/contract/blob-store.ts`
 * holds every backend to it.
 *
 * Promises:
 * - `create` never opens or changes what exists: a name that is there rejects.
 * - After `sync` resolves, every byte written before the call, and the name itself, survive a power cut (with
 *   `fsync: "always"`). After one that rejected, a later one of the same writer promises nothing: the bytes are to be written anew.
 * - A write either lands whole or rejects; after a rejected write the bytes below its position are as they were.
 * - Faults of the medium reject with TransferError `storage_full` (ENOSPC, EDQUOT, EFBIG) or `storage_unavailable` (EIO, EMFILE,
 *   ENFILE, …), with the cause kept for the log.
 * - Names are made by `newBlobName`; anything else is refused, so no name leads out of the store.
 */
export interface BlobWriter {
  /** Writes the pieces one after the other from `position` (bytes from the start of the blob). One write at a time. */
  write(pieces: readonly Uint8Array[], position: number): Promise<void>;
  sync(): Promise<void>;
  /** Gives room on a full medium back: drops the bytes from `position` on, which no commit has named. */
  cut(position: number): Promise<void>;
  close(): Promise<void>;
}

export interface BlobReader {
  /** Fills as much of `target` as there is from `position`; returns the bytes read, 0 at the end. */
  read(target: Uint8Array, position: number): Promise<number>;
  close(): Promise<void>;
}

export interface BlobStat {
  readonly sizeBytes: number;
  readonly modifiedAt: Date;
}

export interface BlobStore {
  create(name: string): Promise<BlobWriter>;
  /** Opens for reading; rejects with `storage_unavailable` where it is not there. */
  open(name: string): Promise<BlobReader>;
  /** Null where it is not there. */
  stat(name: string): Promise<BlobStat | null>;
  /** Path on this machine, where the store has one: for readers in other threads. */
  path(name: string): string | null;
  /** Removing what is not there is no error. */
  remove(name: string): Promise<void>;
  /** All names with their age, in batches of at most 1,000, in no order. */
  list(): AsyncIterable<readonly { readonly name: string; readonly modifiedAt: Date }[]>;
  /** Bytes free for this user; Infinity where unknown. Cached for at most a second. */
  freeBytes(): Promise<number>;
  /** Lets go of what the store itself holds open; writers and readers are their owners' to close. */
  close(): Promise<void>;
}
