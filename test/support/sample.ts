/** Files for end-to-end tests that are held nowhere: any piece of one can be made at any time, as fast as AES counts. */
import { createCipheriv, createHash, scryptSync } from "node:crypto";
import { open } from "node:fs/promises";
import { Readable } from "node:stream";

const pieceBytes = 1 << 20;

export class Sample {
  readonly sizeBytes: number;
  readonly #key: Buffer;
  #sha256: string | null = null;

  /** Samples of different names differ everywhere. */
  constructor(name: string, sizeBytes: number) {
    this.sizeBytes = sizeBytes;
    this.#key = scryptSync(name, "sample", 16, { N: 2 });
  }

  /** Bytes from `start` to `end` (exclusive). */
  bytes(start = 0, end = this.sizeBytes): Buffer<ArrayBuffer> {
    const block = Math.floor(start / 16);
    const counter = Buffer.alloc(16);
    counter.writeBigUInt64BE(BigInt(block), 8);
    const blocks = createCipheriv("aes-128-ctr", this.#key, counter).update(Buffer.alloc(end - block * 16));
    return Buffer.from(blocks.subarray(start - block * 16));
  }

  *pieces(start = 0, end = this.sizeBytes): Generator<Buffer<ArrayBuffer>> {
    for (let at = start; at < end; at += pieceBytes) yield this.bytes(at, Math.min(end, at + pieceBytes));
  }

  stream(start = 0, end = this.sizeBytes): Readable {
    return Readable.from(this.pieces(start, end), { objectMode: false });
  }

  get sha256(): string {
    this.#sha256 ??= this.prefixSha256(this.sizeBytes);
    return this.#sha256;
  }

  prefixSha256(end: number): string {
    const hash = createHash("sha256");
    for (const piece of this.pieces(0, end)) hash.update(piece);
    return hash.digest("hex");
  }

  async writeTo(path: string): Promise<void> {
    const file = await open(path, "wx");
    try {
      for (const piece of this.pieces()) await file.write(piece);
    } finally {
      await file.close();
    }
  }
}
