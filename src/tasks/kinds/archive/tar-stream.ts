/** A tar archive as a stream (POSIX ustar, with pax headers where a name or a size needs one), packed with gzip or not. */
import { pipeline, Readable } from "node:stream";
import { createGzip } from "node:zlib";
import tar from "tar-stream";
import { writeAll } from "../write-all.ts";
import type { ArchiveEntry, OpenEntry } from "./archive-entry.ts";

export function tarStream(entries: readonly ArchiveEntry[], open: OpenEntry): Readable {
  return Readable.from(packed(entries, open), { objectMode: false, highWaterMark: 256 << 10 });
}

export function tarGzStream(entries: readonly ArchiveEntry[], open: OpenEntry): Readable {
  // An error of either destroys both; whoever reads gets it from the second. Its header carries no time: the same files make the same bytes.
  return pipeline(tarStream(entries, open), createGzip({ chunkSize: 256 << 10 }), () => {});
}

async function* packed(entries: readonly ArchiveEntry[], open: OpenEntry): AsyncGenerator<Uint8Array> {
  const pack = tar.pack();
  const filling = fill(pack, entries, open);
  filling.catch((error: Error) => pack.destroy(error));
  try {
    for await (const piece of pack as AsyncIterable<Uint8Array>) yield piece;
    await filling;
  } finally {
    pack.destroy();
  }
}

async function fill(pack: tar.Pack, entries: readonly ArchiveEntry[], open: OpenEntry): Promise<void> {
  for (const { name, size, modifiedAt, ...rest } of entries) {
    const stream = await open({ name, size, modifiedAt, ...rest });
    try {
      await new Promise<void>((resolve, reject) => {
        const header = { name, size, mtime: new Date(modifiedAt), mode: 0o644, type: "file" as const };
        const sink = pack.entry(header, (error) => (error == null ? resolve() : reject(error)));
        pack.once("close", () => reject(new Error("the archive is no longer wanted")));
        writeAll(stream as AsyncIterable<Buffer>, sink).catch(reject);
      });
    } finally {
      stream.destroy();
    }
  }
  pack.finalize();
}
