/** Zip archives: the whole directory is judged before the first byte is unpacked, and each file against it while it is. */
import { isUtf8 } from "node:buffer";
import { type Readable, Transform } from "node:stream";
import { crc32 } from "node:zlib";
import yauzl from "yauzl";
import type { OpenedFile } from "../../engine.ts";
import { entryPath, PathsSeen } from "./entry-path.ts";
import { checkRatio, type ExtractLimits, ExtractTally } from "./extract-limits.ts";
import { asDamage, damaged, quoted, refused, tooLarge } from "./refusal.ts";
import { StoredReader } from "./stored-reader.ts";

const stored = 0;
const deflated = 8;
/** APPNOTE 4.3.7: what stands before an entry's name. */
const localHeaderBytes = 30;
/** APPNOTE 4.4.4, bit 11, and 4.6.9. */
const utf8Flag = 0x800;
const unicodePathField = 0x7075;
const fileTypeMask = 0o170000;
const plainFile = 0o100000;
const folder = 0o040000;

export interface ZipMember {
  readonly path: string;
  readonly entry: yauzl.Entry;
  /** Where the next entry begins: this one's bytes end before. */
  readonly before: number;
}

export interface ZipArchive {
  readonly members: readonly ZipMember[];
  /** Bytes of all files. */
  readonly bytes: number;
  open(member: ZipMember): Promise<Readable>;
}

export async function openZip(file: OpenedFile, limits: ExtractLimits): Promise<ZipArchive> {
  const sizeBytes = file.transfer.sizeBytes ?? 0;
  const options = { lazyEntries: true, autoClose: false, strictFileNames: true, validateEntrySizes: true };
  const zip = await read(yauzl.fromRandomAccessReaderPromise(new StoredReader(file), sizeBytes, options));
  if (zip.entryCount > limits.maxEntries) throw tooLarge(`it has more than ${limits.maxEntries} entries`);
  const tally = new ExtractTally(limits);
  const seen = new PathsSeen();
  const found: { path: string; entry: yauzl.Entry; end: number }[] = [];
  for (const entries = zip.eachEntry(); ; ) {
    const next = await read(entries.next());
    if (next.done === true) break;
    const entry: yauzl.Entry = next.value;
    tally.addEntry();
    const path = checkEntry(entry);
    const end =
      entry.relativeOffsetOfLocalHeader + localHeaderBytes + entry.fileNameLength + entry.compressedSize;
    found.push({ path: isFolder(entry) ? "" : path, entry: slim(entry), end });
    if (isFolder(entry)) continue;
    seen.add(path);
    tally.addFile(entry.uncompressedSize);
    checkRatio(entry.uncompressedSize, entry.compressedSize, limits);
  }
  const members = apart(found, sizeBytes).filter(({ path }) => path !== "");
  return { members, bytes: tally.bytes, open: (member) => openMember(zip, member) };
}

function isFolder({ fileName }: yauzl.Entry): boolean {
  return fileName.endsWith("/");
}

function checkEntry(entry: yauzl.Entry): string {
  const { fileName, compressionMethod, compressedSize, uncompressedSize, externalFileAttributes } = entry;
  const path = entryPath(entryName(entry));
  const refuse = (why: string): Error => refused(`${quoted(fileName)} ${why}`);
  if (entry.isEncrypted()) throw refuse("is encrypted");
  if (compressionMethod !== stored && compressionMethod !== deflated)
    throw refuse(`is packed by method ${compressionMethod}, and only deflate is known here`);
  // Many programs go by this type, whatever system the entry says that it is from. 0: none is given.
  const type = (externalFileAttributes >>> 16) & fileTypeMask;
  if (type !== 0 && type !== plainFile && type !== folder) throw refuse("is a link or a device");
  if (isFolder(entry) ? compressedSize > 2 || uncompressedSize > 0 : path === "" || type === folder)
    throw refuse("is neither a file nor a folder");
  return path;
}

/** Some programs write UTF-8 without saying so; what is no UTF-8 is of the code page that the format began with. */
function entryName({ fileName, fileNameRaw, generalPurposeBitFlag, extraFields }: yauzl.Entry): string {
  const isTold =
    (generalPurposeBitFlag & utf8Flag) !== 0 || extraFields.some(({ id }) => id === unicodePathField);
  return isTold || !isUtf8(fileNameRaw) ? fileName : fileNameRaw.toString("utf8");
}

/** Without names, comments and extra fields, which may have 64 KiB each. */
function slim(entry: yauzl.Entry): yauzl.Entry {
  const {
    relativeOffsetOfLocalHeader,
    compressedSize,
    uncompressedSize,
    compressionMethod,
    generalPurposeBitFlag,
    crc32: sum,
  } = entry;
  return Object.assign(new yauzl.Entry(), {
    relativeOffsetOfLocalHeader,
    compressedSize,
    uncompressedSize,
    compressionMethod,
    generalPurposeBitFlag,
    crc32: sum,
  });
}

/** Entries that share bytes are how a small archive becomes an endless one. */
function apart(
  found: readonly { path: string; entry: yauzl.Entry; end: number }[],
  sizeBytes: number,
): ZipMember[] {
  const sorted = found.toSorted(
    (a, b) => a.entry.relativeOffsetOfLocalHeader - b.entry.relativeOffsetOfLocalHeader,
  );
  return sorted.map(({ path, entry, end }, index) => {
    const before = sorted[index + 1]?.entry.relativeOffsetOfLocalHeader ?? sizeBytes;
    if (end > before) throw refused("some of its entries overlap");
    return { path, entry, before };
  });
}

async function openMember(zip: yauzl.ZipFile, { path, entry, before }: ZipMember): Promise<Readable> {
  const { fileDataStart } = await read(zip.readLocalFileHeaderPromise(entry, { minimal: true }));
  if (fileDataStart + entry.compressedSize > before) throw refused("some of its entries overlap");
  const source = await read(zip.openReadStreamPromise(entry));
  let sum = 0;
  const checked = new Transform({
    transform(piece: Buffer, _encoding, done) {
      sum = crc32(piece, sum);
      done(null, piece);
    },
    flush: (done) =>
      done(
        sum === entry.crc32 ? null : damaged(`the bytes of ${quoted(path)} have another CRC than it says`),
      ),
  });
  source.on("error", (error) => checked.destroy(asDamage(error)));
  checked.on("close", () => {
    source.unpipe(checked);
    source.destroy();
  });
  return source.pipe(checked);
}

async function read<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw asDamage(error);
  }
}
