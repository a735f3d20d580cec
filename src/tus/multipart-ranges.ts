/** `multipart/byteranges` (RFC 9110 section 14.6): several ranges of one file in one body of known length. */
import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import type { ByteRange } from "./byte-ranges.ts";

export interface MultipartBody {
  readonly contentType: string;
  readonly lengthBytes: number;
  readonly open: () => Readable;
}

export function multipartBody(
  ranges: readonly ByteRange[],
  file: {
    readonly sizeBytes: number;
    readonly contentType: string;
    stream(start: number, end: number): Readable;
  },
): MultipartBody {
  // Random, so that no file can hold it on purpose.
  const boundary = randomBytes(18).toString("hex");
  const parts = ranges.map(({ start, end }) => ({
    start,
    end,
    head: Buffer.from(
      `\r\n--${boundary}\r\nContent-Type: ${file.contentType}\r\nContent-Range: bytes ${start}-${end - 1}/${file.sizeBytes}\r\n\r\n`,
      "latin1",
    ),
  }));
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (const { start, end, head } of parts) {
      yield head;
      yield* file.stream(start, end);
    }
    yield tail;
  }
  return {
    contentType: `multipart/byteranges; boundary=${boundary}`,
    lengthBytes: parts.reduce(
      (sum, { start, end, head }) => sum + head.byteLength + end - start,
      tail.byteLength,
    ),
    open: () => Readable.from(pieces(), { objectMode: false }),
  };
}
