/**
 * Files that are small enough to travel with their record: a whole file of up to 16 KiB that comes in one body is kept in the
 * state store, so its bytes, offset, size and digest are one commit, shared with all others of that moment. As files of their own they would
 * cost seven calls to the disk each, which is most of the time of a small upload.
 *
 * For everything that reads they are blobs like any other: their names begin with `small:`, and `withSmallFiles` puts them beside
 * the blobs of the blob store.
 */
import type { Readable } from "node:stream";
import { TransferError } from "../errors.ts";
import type { BlobStore } from "./blob-store.ts";
import type { AppendRequest } from "./engine.ts";
import { newBlobName } from "./identifiers.ts";
import type { UploadRecord } from "./records.ts";
import type { TransferState } from "./state-store.ts";

const smallFileBytes = 16 << 10;

const prefix = "small:";

export function newSmallName(handle: string): string {
  return prefix + newBlobName(handle);
}

export function isSmallName(name: string): boolean {
  return name.startsWith(prefix);
}

/** Whether the body of this request is the whole of a small file, as far as announced. */
export function isSmallFile(
  upload: Pick<UploadRecord, "sizeBytes" | "offset" | "leaseActive" | "concat">,
  request: AppendRequest,
): boolean {
  const { sizeBytes } = upload;
  return (
    sizeBytes !== null &&
    sizeBytes <= smallFileBytes &&
    request.body.lengthBytes === sizeBytes &&
    request.offset === 0 &&
    upload.offset === 0 &&
    upload.concat === "whole" &&
    // A digest that comes with the bytes has to get into the record, which the long way does.
    (request.declareSha256 ?? null) === null &&
    !upload.leaseActive
  );
}

/** A small body that takes longer than this is a write like any other, with a lease that others can see. */
export const smallBodyMs = 250;

/** What of a body had been read before, and when its last byte came (`performance.now()`): reading it again is no sign of life. */
export interface HandedBack {
  readonly bytes: number;
  readonly lastByteAt: number;
}

/** Reads a body of at most 16 KiB. Where `stop` or the sender ends it early, `bytes` resolves with what has come: less than announced. */
export class SmallBody {
  lastByteAt = performance.now();
  readonly bytes: Promise<Buffer>;
  readonly #stream: Readable;
  readonly #target: Buffer;
  #filled = 0;
  #settled = false;
  #resolve: (bytes: Buffer) => void = () => {};
  #reject: (error: unknown) => void = () => {};

  constructor(stream: Readable, lengthBytes: number) {
    this.#stream = stream;
    this.#target = Buffer.allocUnsafeSlow(lengthBytes);
    this.bytes = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  start(): void {
    const stream = this.#stream;
    stream
      .on("data", this.#onData)
      .on("end", this.#finish)
      .on("error", this.#finish)
      .on("close", this.#finish);
    if (stream.readableEnded) this.#finish();
    else if (stream.destroyed) this.#finish();
  }

  /** Stops reading, and puts what has come back into the stream for another to read; null where it is too late for that. */
  handBack(): HandedBack | null {
    if (this.#settled || this.#stream.readableEnded || this.#stream.destroyed) return null;
    this.#finish();
    if (this.#filled > 0) this.#stream.unshift(this.#target.subarray(0, this.#filled));
    return { bytes: this.#filled, lastByteAt: this.lastByteAt };
  }

  stop(): void {
    this.#finish();
  }

  readonly #onData = (piece: Uint8Array): void => {
    this.lastByteAt = performance.now();
    if (this.#filled + piece.byteLength > this.#target.byteLength) {
      const error = new TransferError("size_mismatch", "The body has more bytes than were announced.");
      this.#settle(() => this.#reject(error));
      return;
    }
    this.#target.set(piece, this.#filled);
    this.#filled += piece.byteLength;
  };

  readonly #finish = (): void => this.#settle(() => this.#resolve(this.#target.subarray(0, this.#filled)));

  #settle(settle: () => void): void {
    if (this.#settled) return;
    this.#settled = true;
    const stream = this.#stream;
    stream
      .off("data", this.#onData)
      .off("end", this.#finish)
      .off("error", this.#finish)
      .off("close", this.#finish);
    // A sender that breaks off later must not bring the process down.
    stream.on("error", () => {}).pause();
    settle();
  }
}

/** The blobs of a store, with the small files of its state among them. */
export function withSmallFiles(blobs: BlobStore, state: Pick<TransferState, "smallFile">): BlobStore {
  const find = (name: string) => state.smallFile(name);
  return {
    create: (name) => blobs.create(name),
    async open(name) {
      if (!isSmallName(name)) return blobs.open(name);
      const bytes = await find(name);
      if (bytes === null)
        throw new TransferError("storage_unavailable", "Stored bytes are missing.", {
          retryAfterSeconds: 30,
        });
      return {
        async read(target, position) {
          const some = bytes.subarray(position, position + target.byteLength);
          target.set(some);
          return some.byteLength;
        },
        async close() {},
      };
    },
    async stat(name) {
      if (!isSmallName(name)) return blobs.stat(name);
      const bytes = await find(name);
      return bytes === null ? null : { sizeBytes: bytes.byteLength, modifiedAt: new Date(0) };
    },
    path: (name) => (isSmallName(name) ? null : blobs.path(name)),
    async remove(name) {
      // Its row goes with the last that knows of it: `forgetGarbage`.
      if (!isSmallName(name)) await blobs.remove(name);
    },
    list: () => blobs.list(),
    freeBytes: () => blobs.freeBytes(),
    close: () => blobs.close(),
  };
}
