/**
 * Whether the write-ahead log ends in something that SQLite will leave out when it opens the database: a commit that a power cut
 * or a kill interrupted, or one that the disk has lost. SQLite repairs it silently; this only finds it, so that it can be told.
 *
 * To be asked while no process has the database open: a log that is being written looks the same.
 * Format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
 */
import { readFileSync } from "node:fs";

const headerBytes = 32;
const frameHeaderBytes = 24;
/** Low bit: whether checksums are over big-endian words. All machines that this runs on write little-endian ones. */
const littleEndianMagic = 0x377f0682;
/** Each reuse of the log raises the first salt by one and draws the second anew: what lies behind with a first a little lower is of an earlier use. */
const earlierUses = 1 << 20;

type Sums = readonly [number, number];

function checksum(log: Buffer, start: number, end: number, [first, second]: Sums): Sums {
  let [a, b] = [first, second];
  for (let at = start; at < end; at += 8) {
    a = (a + log.readUInt32LE(at) + b) | 0;
    b = (b + log.readUInt32LE(at + 4) + a) | 0;
  }
  return [a, b];
}

const matches = (log: Buffer, at: number, [a, b]: Sums): boolean =>
  log.readUInt32BE(at) === a >>> 0 && log.readUInt32BE(at + 4) === b >>> 0;

/** Bytes behind the last whole commit that are not left over from an earlier use of the log; 0 where there is no log. */
export function tornLogBytes(path: string): number {
  let log: Buffer;
  try {
    log = readFileSync(path);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return 0;
    throw error;
  }
  if (log.byteLength < headerBytes) return log.byteLength;
  const isOther = log.readUInt32BE(0) !== littleEndianMagic;
  let sums = checksum(log, 0, 24, [0, 0]);
  if (isOther || !matches(log, 24, sums)) return log.byteLength;
  const frameBytes = frameHeaderBytes + log.readUInt32BE(8);
  const [salt, drawn] = [log.readUInt32BE(16), log.readUInt32BE(20)];
  let at = headerBytes;
  let committed = headerBytes;
  for (; at + frameBytes <= log.byteLength; at += frameBytes) {
    if (!log.subarray(at + 8, at + 16).equals(log.subarray(16, 24))) break;
    sums = checksum(log, at + frameHeaderBytes, at + frameBytes, checksum(log, at, at + 8, sums));
    if (!matches(log, at + 16, sums)) return log.byteLength - committed;
    if (log.readUInt32BE(at + 4) !== 0) committed = at + frameBytes;
  }
  if (at === log.byteLength) return at - committed;
  if (at + frameHeaderBytes > log.byteLength || (log.byteLength - headerBytes) % frameBytes !== 0)
    return log.byteLength - committed;
  const usesAgo = (salt - log.readUInt32BE(at + 8)) >>> 0;
  // Where only one of the two is another, the disk has spoiled it.
  const isEarlierUse = usesAgo > 0 && usesAgo < earlierUses && log.readUInt32BE(at + 12) !== drawn;
  return isEarlierUse ? at - committed : log.byteLength - committed;
}
