/** Reading what is stored: segments in order, as one run of bytes. */
import { Readable } from "node:stream";
import { TransferError } from "../errors.ts";
import type { BlobReader, BlobStore } from "./blob-store.ts";
import type { SegmentRecord, UploadRecord } from "./records.ts";
import { unknownHandle } from "./view.ts";

/** Reads at any position over several segments; keeps one blob open. */
export class StoredBytes {
  readonly #blobs: BlobStore;
  #segments: readonly SegmentRecord[];
  /** Where the bytes are now, should a blob have gone meanwhile: a finished file may be rewritten while it is read. */
  readonly #lookAgain: (() => Promise<readonly SegmentRecord[]>) | null;
  #open: { readonly blob: string; readonly reader: BlobReader } | null = null;
  #closed = false;

  constructor(
    blobs: BlobStore,
    segments: readonly SegmentRecord[],
    lookAgain: (() => Promise<readonly SegmentRecord[]>) | null = null,
  ) {
    this.#blobs = blobs;
    this.#segments = segments;
    this.#lookAgain = lookAgain;
  }

  /** Fills `target` from `position` as far as one segment reaches; 0 at the end. */
  async read(target: Uint8Array, position: number): Promise<number> {
    const segment = this.#segmentAt(position);
    if (segment === undefined) return 0;
    try {
      return await this.#readFrom(segment, target, position);
    } catch (error) {
      const found = this.#lookAgain === null ? [] : await this.#lookAgain();
      const elsewhere = found.find(({ start, length }) => position >= start && position < start + length);
      if (elsewhere === undefined || elsewhere.blob === segment.blob) throw error;
      this.#segments = found;
      return this.#readFrom(elsewhere, target, position);
    }
  }

  async #readFrom(segment: SegmentRecord, target: Uint8Array, position: number): Promise<number> {
    const within = position - segment.start;
    const want = Math.min(target.byteLength, segment.length - within);
    const reader = await this.#readerOf(segment.blob);
    const got = await reader.read(
      want === target.byteLength ? target : target.subarray(0, want),
      segment.blobOffset + within,
    );
    if (got === 0 && want > 0) {
      throw new TransferError("storage_unavailable", "Stored bytes are missing.", { retryAfterSeconds: 30 });
    }
    return got;
  }

  /** For good: what is read after it, or is being opened meanwhile, rejects. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#letGo();
  }

  async #letGo(): Promise<void> {
    const open = this.#open;
    this.#open = null;
    await open?.reader.close();
  }

  async #readerOf(blob: string): Promise<BlobReader> {
    if (this.#open?.blob === blob) return this.#open.reader;
    await this.#letGo();
    const reader = await this.#blobs.open(blob);
    if (this.#closed) {
      await reader.close();
      throw new Error("closed while a blob was opened");
    }
    this.#open = { blob, reader };
    return reader;
  }

  /** Binary search: an upload of many small writes has many segments. */
  #segmentAt(position: number): SegmentRecord | undefined {
    let low = 0;
    let high = this.#segments.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const segment = this.#segments[middle];
      if (segment === undefined) return undefined;
      if (position < segment.start) high = middle - 1;
      else if (position >= segment.start + segment.length) low = middle + 1;
      else return segment;
    }
    return undefined;
  }
}

const pieceBytes = 512 << 10;

/** A stream of the bytes from `start` to `end` (exclusive). */
export function streamStored(
  blobs: BlobStore,
  segments: readonly SegmentRecord[],
  start: number,
  end: number,
  lookAgain: (() => Promise<readonly SegmentRecord[]>) | null = null,
): Readable {
  const bytes = new StoredBytes(blobs, segments, lookAgain);
  let position = start;
  return new Readable({
    highWaterMark: pieceBytes,
    read() {
      const want = Math.min(pieceBytes, end - position);
      if (want <= 0) {
        this.push(null);
        return;
      }
      const piece = Buffer.allocUnsafeSlow(want);
      bytes.read(piece, position).then(
        (got) => {
          position += got;
          if (got === 0) this.destroy(new TransferError("storage_unavailable", "Stored bytes are missing."));
          else this.push(got === want ? piece : piece.subarray(0, got));
        },
        (error: unknown) => this.destroy(error instanceof Error ? error : new Error(String(error))),
      );
    },
    destroy(error, callback) {
      bytes.close().then(
        () => callback(error),
        () => callback(error),
      );
    },
  });
}

/** The bytes from `start` to `end` (exclusive) in one piece. */
export async function readStored(
  blobs: BlobStore,
  segments: readonly SegmentRecord[],
  start: number,
  end: number,
  lookAgain: (() => Promise<readonly SegmentRecord[]>) | null = null,
): Promise<Buffer> {
  const bytes = new StoredBytes(blobs, segments, lookAgain);
  const all = Buffer.allocUnsafeSlow(end - start);
  try {
    for (let filled = 0; filled < all.byteLength; ) {
      const got = await bytes.read(filled === 0 ? all : all.subarray(filled), start + filled);
      if (got === 0) throw new TransferError("storage_unavailable", "Stored bytes are missing.");
      filled += got;
    }
    return all;
  } finally {
    await bytes.close();
  }
}

/** Compares a body that starts at 0 with what is stored, piece by piece; throws `checksum_mismatch` (409) at the first other byte. */
export function compareWithStored(
  blobs: BlobStore,
  segments: readonly SegmentRecord[],
  upload: Pick<UploadRecord, "offset">,
) {
  const bytes = new StoredBytes(blobs, segments);
  let position = 0;
  return {
    async next(piece: Uint8Array): Promise<void> {
      let rest = piece;
      const stored = Buffer.allocUnsafe(Math.min(piece.byteLength, pieceBytes));
      while (rest.byteLength > 0) {
        const got = await bytes.read(
          stored.subarray(0, Math.min(stored.byteLength, rest.byteLength)),
          position,
        );
        // The record has ended meanwhile (deleted, or made into a final upload): nothing is known of its bytes.
        if (got === 0) throw unknownHandle();
        if (stored.compare(rest, 0, got, 0, got) !== 0) {
          await bytes.close();
          throw new TransferError(
            "checksum_mismatch",
            `The body is not the file whose first ${upload.offset} bytes are here.`,
            {
              status: 409,
              cursor: upload.offset,
              recoveryHint: `Send the same file, or only its bytes from offset ${upload.offset}; for another file create a new upload.`,
            },
          );
        }
        position += got;
        rest = rest.subarray(got);
      }
      if (position >= upload.offset) await bytes.close();
    },
    close: () => bytes.close(),
  };
}
