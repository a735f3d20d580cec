/**
 * Handles, tickets and blob names: how they are made and recognised. Randomness is from the operating system; tickets are
 * only ever kept as their sha256.
 */
import { hash, randomBytes } from "node:crypto";

const base32 = "abcdefghijklmnopqrstuvwxyz234567";

/**
 * Identifiers begin with the time of their making, in units of 4 s: then those of one hour stand side by side in the indices of
 * the state store, and making the millionth record touches no more pages than making the first. The time is no part of the secret.
 */
function timePrefix(): Buffer {
  const prefix = Buffer.alloc(4);
  prefix.writeUInt32BE(Math.floor(Date.now() / 4000) >>> 0);
  return prefix;
}

let pool = Buffer.alloc(0);
let used = 0;

/** Random bytes of the operating system, asked for in larger pieces; none is given out twice. */
function freshBytes(count: number): Buffer {
  if (used + count > pool.byteLength) {
    pool = randomBytes(Math.max(4096, count));
    used = 0;
  }
  used += count;
  return pool.subarray(used - count, used);
}

/** 32 characters that sort by time: 32 bits of time and 128 random ones. */
export function newOrderedId(): string {
  return base32Of(Buffer.concat([timePrefix(), freshBytes(16)]));
}

/** Lower-case base32 (RFC 4648 alphabet, no padding) of `bytes` random bytes; 5 bytes are 8 characters. */
function randomBase32(bytes: number): string {
  return base32Of(freshBytes(bytes));
}

function base32Of(bytes: Uint8Array): string {
  let bits = 0;
  let value = 0;
  let text = "";
  for (const byte of bytes) {
    value = (value << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += base32.charAt((value >>> bits) & 31);
    }
    value &= (1 << bits) - 1;
  }
  return text;
}

/** `fh_`, the time, and 128 random bits. */
export function newHandle(): string {
  return `fh_${newOrderedId()}`;
}

export function isHandle(text: string): boolean {
  return /^fh_[a-z2-7]{32}$/.test(text);
}

/** The time and 208 random bits, URL-safe. */
export function newTicket(): string {
  return Buffer.concat([timePrefix(), freshBytes(26)]).toString("base64url");
}

/** The form of a ticket, checked before anything is looked up. */
export function isTicket(text: string): boolean {
  return /^[A-Za-z0-9_-]{40}$/.test(text);
}

/**
 * What is stored and looked up: the time of the ticket (8 hex digits, for the order) and its sha256. A hash in an index leaks no usable
 * timing about a secret of 208 bits.
 */
export function ticketHash(ticket: string): string {
  const time = Buffer.from(ticket.slice(0, 6), "base64url").toString("hex");
  return time + hash("sha256", ticket);
}

/**
 * Name of a new blob of this handle: unique even where a restored state store counts fences a second time. The handle leads, so that
 * a person finds the files of an upload by its handle.
 */
export function newBlobName(handle: string): string {
  return `${handle.slice(3)}.${randomBase32(10)}`;
}

export function isBlobName(text: string): boolean {
  return /^[a-z2-7]{32}\.[a-z2-7]{16}$/.test(text);
}
