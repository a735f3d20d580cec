/**
 * One body on its way to one blob: reading and writing overlap, nothing per piece but an addition, and at any moment it is known how
 * many bytes have been written in a row from the start.
 *
 * It decides nothing about offsets, commits or leases: `leased-write.ts` does. It promises that when `done` settles no write is running, that
 * `writtenBytes` are in the blob, and that the stream is neither read any further nor destroyed.
 */
import type { Readable } from "node:stream";
import type { TransferError } from "../errors.ts";
import type { BlobWriter } from "./blob-store.ts";
import { Gather, type GatherBudget } from "./gather.ts";
import type { HandedBack } from "./small-files.ts";

/** How a body ended. `stopped`: by `stop`, with what had come written. `aborted`: the sender went away. */
export type BodyEnd = "ended" | "aborted" | "stopped";

export interface BodyWriterOptions {
  readonly stream: Readable;
  /** Bytes at the start of the body that are already stored: compared with `compare`, not written. */
  readonly skipBytes: number;
  readonly compare: ((piece: Uint8Array) => Promise<void>) | null;
  /** More bytes than this (skipped ones included) are an error: `overflow`. */
  readonly maxBytes: number;
  readonly overflow: () => TransferError;
  /** Opened when the first byte is to be written. */
  readonly openBlob: () => Promise<BlobWriter>;
  /** Position in the blob of the first byte written. */
  readonly position: number;
  readonly budget: GatherBudget;
  /** After each write that has landed, with `writtenBytes` so far. What it returns is waited for before the next write. */
  readonly onWritten: (writtenBytes: number) => Promise<void> | null;
  /** What of the body was read once before, and when its last byte came. */
  readonly before: HandedBack | null;
  /** See `Body.disposable`. */
  readonly disposable: boolean;
  /** Sees each piece in order, for a digest of the body. */
  readonly onPiece: ((piece: Uint8Array) => void) | null;
}

export class BodyWriter {
  /** Bytes of the body that came. */
  receivedBytes = 0;
  /** Bytes written in a row. */
  writtenBytes = 0;
  /** `performance.now()` of the last byte. */
  lastByteAt = performance.now();
  blob: BlobWriter | null = null;
  readonly done: Promise<BodyEnd>;

  readonly #options: BodyWriterOptions;
  readonly #gather = new Gather();
  #busy = false;
  #flushing = false;
  #end: BodyEnd | null = null;
  #failure: unknown = null;
  #failed = false;
  #settled = false;
  #started = false;
  #resolve: (end: BodyEnd) => void = () => {};
  #reject: (error: unknown) => void = () => {};
  #skipLeft: number;

  constructor(options: BodyWriterOptions) {
    this.#options = options;
    if (options.before !== null) this.lastByteAt = options.before.lastByteAt;
    this.#skipLeft = options.skipBytes;
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  start(): void {
    // Stopped before it began: the stream is left as it is.
    if (this.#settled) return;
    const { stream } = this.#options;
    this.#started = true;
    this.#options.budget.enter();
    stream.on("data", this.#onData);
    stream.on("end", this.#onEnd);
    stream.on("error", this.#onAbort);
    stream.on("close", this.#onAbort);
    // A stream that had ended or broken before says nothing any more.
    if (stream.readableEnded) this.#onEnd();
    else if (stream.destroyed) this.#onAbort();
    // Whoever had it before may have paused it.
    else stream.resume();
  }

  /** Reads no further; what has come is written, then `done` resolves with `stopped`. */
  stop(): void {
    this.#finish("stopped");
  }

  /** Writes what has come although it is less than would be gathered otherwise: a slow sender's bytes must not wait for more. */
  flush(): void {
    if (this.#gather.bytes === 0) return;
    this.#flushing = true;
    if (!this.#busy) this.#pump();
  }

  /** The body is refused from here on: `done` rejects with this once what is being written has landed. */
  refuse(error: TransferError): void {
    if (this.#end === null) this.#fail(error);
  }

  /** After `done`: drops what was written behind the first `bytes`, to give room back to a full disk. */
  async cut(bytes: number): Promise<void> {
    if (this.blob === null || bytes >= this.writtenBytes) return;
    this.writtenBytes = bytes;
    await this.blob.cut(this.#options.position + bytes);
  }

  readonly #onData = (piece: Uint8Array): void => {
    if (this.#end !== null || this.#failed) return;
    this.receivedBytes += piece.byteLength;
    if (this.receivedBytes > (this.#options.before?.bytes ?? 0)) this.lastByteAt = performance.now();
    if (this.receivedBytes > this.#options.maxBytes) {
      this.#fail(this.#options.overflow());
      return;
    }
    this.#options.onPiece?.(piece);
    this.#gather.add(piece);
    if (this.#gather.bytes < this.#options.budget.shareBytes) return;
    if (this.#busy) this.#options.stream.pause();
    else this.#pump();
  };

  readonly #onEnd = (): void => this.#finish("ended");
  readonly #onAbort = (): void => this.#finish("aborted");

  #finish(end: BodyEnd): void {
    if (this.#end !== null || this.#failed) return;
    this.#end = end;
    this.#detach();
    if (!this.#busy) this.#pump();
  }

  #fail(error: unknown): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#failure = error;
    this.#detach();
    if (!this.#busy) this.#settle();
  }

  #detach(): void {
    const { stream } = this.#options;
    stream.off("data", this.#onData);
    stream.off("end", this.#onEnd);
    stream.off("close", this.#onAbort);
    stream.off("error", this.#onAbort);
    // A sender that breaks off later must not bring the process down.
    stream.on("error", () => {});
    stream.pause();
  }

  /** Hands what is gathered to the disk, and goes on as long as there is enough (or the end has come). */
  #pump(): void {
    if (this.#failed) {
      this.#settle();
      return;
    }
    const enough = this.#flushing || this.#gather.bytes >= this.#options.budget.shareBytes;
    if (this.#gather.bytes === 0 || !(enough || this.#end !== null)) {
      if (this.#end !== null) this.#settle();
      return;
    }
    this.#busy = true;
    this.#flushing = false;
    const bytes = this.#gather.bytes;
    this.#store(this.#gather.take(), bytes).then(
      () => {
        this.#busy = false;
        if (this.#end === null && !this.#failed) this.#options.stream.resume();
        this.#pump();
      },
      (error: unknown) => {
        this.#busy = false;
        if (this.#failed) this.#settle();
        else this.#fail(error);
      },
    );
  }

  async #store(pieces: Uint8Array[], bytes: number): Promise<void> {
    let rest = pieces;
    let count = bytes;
    if (this.#skipLeft > 0) {
      rest = await this.#compareSome(pieces);
      count = rest.reduce((sum, piece) => sum + piece.byteLength, 0);
      if (count === 0) return;
    }
    this.blob ??= await this.#options.openBlob();
    await this.blob.write(rest, this.#options.position + this.writtenBytes);
    this.writtenBytes += count;
    if (this.#options.disposable) dispose(rest);
    const wait = this.#options.onWritten(this.writtenBytes);
    if (wait !== null) await wait;
  }

  async #compareSome(pieces: Uint8Array[]): Promise<Uint8Array[]> {
    const rest: Uint8Array[] = [];
    for (const piece of pieces) {
      const known = Math.min(this.#skipLeft, piece.byteLength);
      if (known > 0) await this.#options.compare?.(piece.subarray(0, known));
      this.#skipLeft -= known;
      if (known < piece.byteLength) rest.push(piece.subarray(known));
    }
    return rest;
  }

  #settle(): void {
    if (this.#settled) return;
    this.#settled = true;
    if (this.#started) this.#options.budget.leave();
    if (this.#failed) this.#reject(this.#failure);
    else this.#resolve(this.#end ?? "stopped");
  }
}

/**
 * Gives the memory of written pieces back at once. Each is an ArrayBuffer of its own outside of the heap; left to the collector, they
 * make it run a full mark-compact every few tens of MiB and hold several times as much memory.
 */
function dispose(pieces: readonly Uint8Array[]): void {
  for (const { buffer, byteLength } of pieces) {
    if (byteLength >= 4096 && buffer.byteLength === byteLength && buffer instanceof ArrayBuffer)
      buffer.transfer(0);
  }
}
