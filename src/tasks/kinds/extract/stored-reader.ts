/** A stored file, for a library that reads at any position. */
import type { Readable } from "node:stream";
import yauzl from "yauzl";
import type { OpenedFile } from "../../engine.ts";

const windowBytes = 256 << 10;

export class StoredReader extends yauzl.RandomAccessReader {
  readonly #file: OpenedFile;
  readonly #sizeBytes: number;
  #window: { readonly start: number; readonly bytes: Buffer } = { start: 0, bytes: Buffer.alloc(0) };

  constructor(file: OpenedFile) {
    super();
    this.#file = file;
    this.#sizeBytes = file.transfer.sizeBytes ?? 0;
  }

  override _readStreamForRange(start: number, end: number): Readable {
    return this.#file.stream(start, end);
  }

  /** The directory of an archive is read in very many very small pieces, one behind the other. */
  override read(
    target: Buffer,
    offset: number,
    length: number,
    position: number,
    done: (error: Error | null) => void,
  ): void {
    this.#read(target, offset, length, position).then(() => done(null), done);
  }

  async #read(target: Buffer, offset: number, length: number, position: number): Promise<void> {
    for (let copied = 0; copied < length; ) {
      const at = position + copied;
      const { start, bytes } =
        at < this.#window.start || at >= this.#window.start + this.#window.bytes.byteLength
          ? await this.#load(at)
          : this.#window;
      copied += bytes.copy(
        target,
        offset + copied,
        at - start,
        Math.min(bytes.byteLength, at - start + length - copied),
      );
    }
  }

  async #load(start: number): Promise<{ readonly start: number; readonly bytes: Buffer }> {
    if (start >= this.#sizeBytes) throw new Error("it ends too early");
    const pieces: Buffer[] = [];
    for await (const piece of this.#file.stream(start, Math.min(start + windowBytes, this.#sizeBytes)))
      pieces.push(piece as Buffer);
    // Entries that are read side by side may each load a window; the last one stays.
    this.#window = { start, bytes: Buffer.concat(pieces) };
    return this.#window;
  }
}
