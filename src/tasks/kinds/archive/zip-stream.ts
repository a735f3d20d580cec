/** A zip archive as a stream. */
import { PassThrough, type Readable } from "node:stream";
import yazl from "yazl";
import type { ArchiveEntry, OpenEntry } from "./archive-entry.ts";

/** Files whose bytes are compressed already: a second time costs much and gains nothing. */
const compressed =
  /\.(?:zip|gz|tgz|bz2|xz|zst|br|7z|rar|jar|docx|xlsx|pptx|odt|apk|whl|png|jpe?g|gif|webp|avif|heic|mp[34]|m4[av]|mov|mkv|webm|ogg|opus|flac|woff2?|parquet)$/i;

/** From here on sizes may not fit 32 bits; deflate can make a file a little larger than it is. */
const zip64Bytes = 0xf000_0000;

export function zipStream(entries: readonly ArchiveEntry[], open: OpenEntry): Readable {
  const zip = new yazl.ZipFile();
  // The library's own end may not be destroyed while it pipes into it, so that what is handed out is a stream behind it.
  const output = new PassThrough({ highWaterMark: 256 << 10 });
  let current: Readable | null = null;
  const fail = (error: Error): void => void output.destroy(error);
  zip.on("error", fail);
  zip.outputStream.on("error", fail);
  for (const entry of entries) {
    const options = {
      mtime: new Date(entry.modifiedAt),
      mode: 0o100644,
      size: entry.size,
      compress: !compressed.test(entry.name),
      forceZip64Format: entry.size >= zip64Bytes,
    };
    zip.addReadStreamLazy(entry.name, options, (go) => {
      open(entry).then((stream) => {
        current = stream;
        stream.on("error", fail);
        if (output.destroyed) stream.destroy();
        go(null, stream);
      }, fail);
    });
  }
  zip.end();
  output.on("close", () => {
    zip.outputStream.unpipe(output);
    current?.destroy();
  });
  zip.outputStream.pipe(output);
  return output;
}
