/** Tar archives, packed with gzip or not, read from start to end: their files come one after the other. */
import { pipeline } from "node:stream";
import { createGunzip } from "node:zlib";
import tar from "tar-stream";
import type { OpenedFile } from "../../engine.ts";
import { writeAll } from "../write-all.ts";
import { isTar } from "./archive-format.ts";
import { entryPath, PathsSeen } from "./entry-path.ts";
import { checkRatio, type ExtractLimits, ExtractTally } from "./extract-limits.ts";
import { asDamage, noArchive, quoted, refused } from "./refusal.ts";

export interface TarMember {
  readonly path: string;
  readonly size: number;
  /** To be read before the next member is asked for, or left alone. */
  readonly stream: AsyncIterable<Buffer>;
}

/** Headers, padding and the zeros at the end come on top of the files' bytes. */
const overheadBytes = 64 << 20;

export async function* readTar(
  file: OpenedFile,
  isPacked: boolean,
  limits: ExtractLimits,
): AsyncGenerator<TarMember> {
  const extract = tar.extract();
  const feeding = feed(unpacked(file, isPacked, limits), extract);
  const tally = new ExtractTally(limits);
  const seen = new PathsSeen();
  try {
    for await (const entry of extract) {
      tally.addEntry();
      const path = checkEntry(entry.header);
      const size = entry.header.size;
      if (path !== null) {
        seen.add(path);
        tally.addFile(size);
        yield { path, size, stream: piecesOf(entry) };
      }
      entry.resume();
    }
    await feeding;
  } catch (error) {
    throw asDamage(error);
  } finally {
    extract.destroy();
    await feeding.catch(() => {});
  }
}

async function* piecesOf(entry: AsyncIterable<unknown>): AsyncGenerator<Buffer> {
  try {
    yield* entry as AsyncIterable<Buffer>;
  } catch (error) {
    throw asDamage(error);
  }
}

/** Null for a folder. */
function checkEntry(header: tar.Header): string | null {
  const { name, type, pax } = header;
  const path = entryPath(name);
  const refuse = (why: string): Error => refused(`${quoted(name)} ${why}`);
  switch (type) {
    case "directory":
      return null;
    case "file":
    case "contiguous-file":
      if (Object.keys(pax ?? {}).some((key) => key.startsWith("GNU.sparse.")))
        throw refuse("is a sparse file");
      if (path === "" || name.endsWith("/")) throw refuse("is neither a file nor a folder");
      return path;
    case "link":
    case "symlink":
      throw refuse("is a link");
    case "character-device":
    case "block-device":
    case "fifo":
      throw refuse("is a device");
    default:
      throw refuse("is of a kind that is not known here");
  }
}

async function* unpacked(file: OpenedFile, isPacked: boolean, limits: ExtractLimits): AsyncGenerator<Buffer> {
  if (!isPacked) {
    yield* file.stream() as AsyncIterable<Buffer>;
    return;
  }
  const gunzip = createGunzip({ chunkSize: 256 << 10 });
  pipeline(file.stream(), gunzip, () => {});
  let bytes = 0;
  let head = Buffer.alloc(0);
  for await (const piece of gunzip as AsyncIterable<Buffer>) {
    if (bytes < 512) {
      head = Buffer.concat([head, piece.subarray(0, 512)]);
      // Any file may be packed with gzip: what is inside tells.
      if (head.byteLength >= 512 && !isTar(head)) throw noArchive();
    }
    bytes += piece.byteLength;
    checkRatio(bytes, gunzip.bytesWritten, limits);
    if (bytes > limits.maxTotalBytes + overheadBytes) new ExtractTally(limits).addFile(bytes);
    yield piece;
  }
  if (bytes < 512) throw noArchive();
}

async function feed(pieces: AsyncIterable<Buffer>, extract: tar.Extract): Promise<void> {
  try {
    await writeAll(pieces, extract);
  } catch (error) {
    extract.destroy(asDamage(error));
  }
}
