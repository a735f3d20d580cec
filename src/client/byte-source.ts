/** Where an upload's bytes come from, read at any place as far as the source can. */
import { TransferFailure } from "./transfer-failure.ts";

/**
 * A `File` or other `Blob` and bytes in memory can be resumed at any place. A stream is read once: it goes on after failures of the
 * connection, and is read past what an earlier upload has brought already.
 *
 * @example
 * const source: UploadSource = document.querySelector("input").files[0];
 */
export type UploadSource =
  | Blob
  | Uint8Array
  | ArrayBuffer
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array>;

export interface ByteSource {
  /** Null: known at the end only. */
  readonly sizeBytes: number | null;
  /** `length` bytes from `offset`, or less where the source ends there. */
  read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>>;
}

export function byteSource(source: UploadSource): ByteSource {
  if (source instanceof Blob) return ofBlob(source);
  if (source instanceof ArrayBuffer) return ofBytes(new Uint8Array(source));
  if (source instanceof Uint8Array) return ofBytes(source);
  return new StreamSource(source instanceof ReadableStream ? piecesOf(source) : source);
}

function ofBlob(blob: Blob): ByteSource {
  return {
    sizeBytes: blob.size,
    read: async (offset, length) => new Uint8Array(await blob.slice(offset, offset + length).arrayBuffer()),
  };
}

function ofBytes(bytes: Uint8Array): ByteSource {
  return {
    sizeBytes: bytes.byteLength,
    // A copy, since what is being sent must not change under way, nor lie in shared memory.
    read: async (offset, length) => new Uint8Array(bytes.subarray(offset, offset + length)),
  };
}

/** Not every browser can iterate over a stream. */
async function* piecesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.releaseLock();
  }
}

/** Keeps the last window that was read, so that it can be sent again. */
class StreamSource implements ByteSource {
  readonly sizeBytes = null;
  readonly #pieces: AsyncIterator<Uint8Array>;
  #start = 0;
  #window = new Uint8Array(0);
  /** Came with the last piece of the window, and belongs behind it. */
  #rest: Uint8Array = new Uint8Array(0);

  constructor(pieces: AsyncIterable<Uint8Array>) {
    this.#pieces = pieces[Symbol.asyncIterator]();
  }

  async read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    if (offset < this.#start || offset > this.#start + this.#window.length)
      throw new TransferFailure(
        "source_changed",
        "The stream cannot go back to the byte that the server expects.",
        {
          recoveryHint: "Upload again with a new stream from its start, or from a file.",
        },
      );
    const kept = this.#window.subarray(offset - this.#start);
    const window = new Uint8Array(length);
    window.set(kept.subarray(0, length));
    // Asked for less than is kept: the window stays as it is.
    if (kept.length >= length) return window;
    const filled = await this.#fill(window, kept.length);
    this.#start = offset;
    this.#window = window.slice(0, filled);
    return this.#window;
  }

  async #fill(window: Uint8Array, from: number): Promise<number> {
    let at = from;
    for (;;) {
      const taken = this.#rest.subarray(0, window.length - at);
      window.set(taken, at);
      at += taken.length;
      this.#rest = this.#rest.subarray(taken.length);
      if (at === window.length) return at;
      const { done, value } = await this.#pieces.next();
      if (done === true) return at;
      this.#rest = value;
    }
  }
}
