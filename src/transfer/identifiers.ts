/**
 * Handles, tickets and blob names: how they are made and recognised. Randomness is from the operating system; tickets are
 * only ever kept as their sha256.
 */
import { createHash, randomBytes } from "node:crypto";

const base32 = "abcdefghijklmnopqrstuvwxyz234567";

/** Lower-case base32 (RFC 4648 alphabet, no padding) of `bytes` random bytes; 5 bytes are 8 characters. */
export function randomBase32(bytes: number): string {
  let bits = 0;
  let value = 0;
  let text = "";
  for (const byte of randomBytes(bytes)) {
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

/** `fh_` and 160 random bits. */
export function newHandle(): string {
  return `fh_${randomBase32(20)}`;
}

export function isHandle(text: string): boolean {
  return /^fh_[a-z2-7]{32}$/.test(text);
}

/** 240 random bits, URL-safe. */
export function newTicket(): string {
  return randomBytes(30).toString("base64url");
}

/** The form of a ticket, checked before anything is looked up. */
export function isTicket(text: string): boolean {
  return /^[A-Za-z0-9_-]{40}$/.test(text);
}

/** Hex sha256: what is stored and looked up. A hash in an index leaks no usable timing about a secret of 240 bits. */
export function ticketHash(ticket: string): string {
  return createHash("sha256").update(ticket).digest("hex");
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
