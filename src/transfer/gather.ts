/**
 * Gathers the pieces of a body into writes of up to 1 MiB, and bounds what all bodies of a process hold.
 *
 * The pieces that Node hands out are kept and written by one gathered call; pieces under 4 KiB are copied together instead, because each
 * would keep its own bookkeeping (and its slab) alive: one-byte chunks would otherwise cost hundreds of times their size.
 */

/** One for each process: what the gathers of all running writes may hold together. */
export class GatherBudget {
  readonly #totalBytes: number;
  #writers = 0;

  constructor(totalBytes = 48 << 20) {
    this.#totalBytes = totalBytes;
  }

  enter(): void {
    this.#writers += 1;
  }

  leave(): void {
    this.#writers -= 1;
  }

  /** Bytes one write gathers before it is handed to the disk: 64 KiB to 1 MiB. Twice this is held while a write runs. */
  get shareBytes(): number {
    const share = Math.floor(this.#totalBytes / (2 * Math.max(1, this.#writers)));
    return Math.max(64 << 10, Math.min(1 << 20, share));
  }
}

const copyBelowBytes = 4 << 10;
const maxCopyBufferBytes = 64 << 10;

export class Gather {
  bytes = 0;
  #pieces: Uint8Array[] = [];
  #copy: Buffer | null = null;
  #copied = 0;
  #copyBytes = 4 << 10;

  add(piece: Uint8Array): void {
    this.bytes += piece.byteLength;
    if (piece.byteLength >= copyBelowBytes) {
      this.#closeCopy();
      this.#pieces.push(piece);
      return;
    }
    let rest = piece;
    while (rest.byteLength > 0) {
      this.#copy ??= this.#newCopyBuffer();
      const fits = Math.min(rest.byteLength, this.#copy.byteLength - this.#copied);
      this.#copy.set(rest.subarray(0, fits), this.#copied);
      this.#copied += fits;
      rest = rest.subarray(fits);
      if (this.#copied === this.#copy.byteLength) this.#closeCopy();
    }
  }

  /** All pieces so far, in order; the gather is empty afterwards. */
  take(): Uint8Array[] {
    this.#closeCopy();
    const pieces = this.#pieces;
    this.#pieces = [];
    this.bytes = 0;
    return pieces;
  }

  /** Small at first: most bodies that come in small pieces are small themselves. */
  #newCopyBuffer(): Buffer {
    this.#copyBytes = Math.min(maxCopyBufferBytes, this.#copyBytes * 2);
    return Buffer.allocUnsafeSlow(this.#copyBytes);
  }

  /** What was copied becomes a piece; what is left of the buffer serves the next small pieces. */
  #closeCopy(): void {
    if (this.#copy === null || this.#copied === 0) return;
    this.#pieces.push(this.#copy.subarray(0, this.#copied));
    const left = this.#copy.subarray(this.#copied);
    this.#copy = left.byteLength < copyBelowBytes ? null : left;
    this.#copied = 0;
  }
}
