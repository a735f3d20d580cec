/**
 * Which uploads this process is hashing along, and how far. A digest is only usable if every byte from the first was told in
 * order; whatever breaks that (another process wrote, a write failed after it was told) drops the key, and the next need reads from
 * the start again.
 */
import { createHash } from "node:crypto";
import type { DigestFollower, FollowedDigest } from "../integrity/digest-follower.ts";
import type { BlobStore } from "./blob-store.ts";
import type { SegmentRecord, UploadRecord } from "./records.ts";

interface Followed {
  /** Bytes told, in a row from the start. */
  to: number;
  /** Set while the segments of the past are being looked up; what is written meanwhile waits here. */
  backlog: { path: string; start: number; end: number }[] | null;
}

/** Uploads followed at once; the longest untouched is given up for a new one. */
const maxFollowed = 1024;

export class UploadDigests {
  readonly #follower: DigestFollower;
  readonly #blobs: BlobStore;
  readonly #segmentsOf: (handle: string) => Promise<SegmentRecord[]>;
  readonly #followed = new Map<string, Followed>();

  constructor(
    follower: DigestFollower,
    blobs: BlobStore,
    segmentsOf: (handle: string) => Promise<SegmentRecord[]>,
  ) {
    this.#follower = follower;
    this.#blobs = blobs;
    this.#segmentsOf = segmentsOf;
  }

  /** Follows from here on: at once where the past is known, else after catching up with it from disk in the background. */
  follow(upload: UploadRecord): void {
    const key = keyOf(upload);
    const known = this.#followed.get(key);
    if (known !== undefined && (known.to === upload.offset || known.backlog !== null)) {
      this.#followed.delete(key);
      this.#followed.set(key, known);
      return;
    }
    if (known !== undefined) this.drop(upload);
    for (const oldest of this.#followed.keys()) {
      if (this.#followed.size < maxFollowed) break;
      this.#followed.delete(oldest);
      this.#follower.drop(oldest);
    }
    const fresh: Followed = { to: upload.offset, backlog: upload.offset === 0 ? null : [] };
    this.#followed.set(key, fresh);
    if (fresh.backlog !== null) void this.#catchUp(upload, fresh);
  }

  /** Bytes `start` to `end` of the blob, which come at `offset` of the upload, have been written. */
  written(upload: UploadRecord, blob: string, start: number, end: number, offset: number): void {
    const known = this.#followed.get(keyOf(upload));
    if (known === undefined) return;
    const path = this.#blobs.path(blob);
    if (known.to !== offset || path === null) {
      this.drop(upload);
      return;
    }
    known.to = offset + (end - start);
    if (known.backlog === null) this.#follower.advance(keyOf(upload), path, start, end);
    else {
      const last = known.backlog.at(-1);
      if (last?.path === path && last.end === start) last.end = end;
      else known.backlog.push({ path, start, end });
    }
  }

  /** Digest of exactly the first `bytes`, or null where this process cannot tell. */
  async digest(upload: UploadRecord, bytes: number): Promise<string | null> {
    // Of an upload of unknown size that ends before its first byte nothing was ever written that could be followed.
    if (bytes === 0) return createHash("sha256").digest("hex");
    const known = this.#followed.get(keyOf(upload));
    if (known === undefined || known.to !== bytes) return null;
    while (known.backlog !== null) {
      if (this.#followed.get(keyOf(upload)) !== known) return null;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const digest = await this.#follower.digest(keyOf(upload)).catch(() => null);
    return digest !== null && digest.bytes === bytes ? digest.hex : null;
  }

  /** Digest of as many bytes from the start as are hashed at this moment; null where nothing is followed. */
  async soFar(upload: UploadRecord): Promise<FollowedDigest | null> {
    if (!this.#followed.has(keyOf(upload))) return null;
    return this.#follower.digest(keyOf(upload), { now: true }).catch(() => null);
  }

  drop(upload: UploadRecord): void {
    if (this.#followed.delete(keyOf(upload))) this.#follower.drop(keyOf(upload));
  }

  async #catchUp(upload: UploadRecord, fresh: Followed): Promise<void> {
    const key = keyOf(upload);
    try {
      const segments = await this.#segmentsOf(upload.handle);
      if (this.#followed.get(key) !== fresh) return;
      let left = upload.offset;
      for (const segment of segments) {
        const path = this.#blobs.path(segment.blob);
        const bytes = Math.min(segment.length, left);
        if (segment.generation !== upload.generation || path === null)
          throw new Error("the segments have changed");
        this.#follower.advance(key, path, segment.blobOffset, segment.blobOffset + bytes);
        left -= bytes;
      }
      if (left > 0) throw new Error("the segments do not reach the offset");
      for (const range of fresh.backlog ?? [])
        this.#follower.advance(key, range.path, range.start, range.end);
      fresh.backlog = null;
    } catch {
      // Nothing is lost: completion reads the file once more.
      if (this.#followed.get(key) === fresh) this.drop(upload);
      fresh.backlog = null;
    }
  }
}

function keyOf(upload: UploadRecord): string {
  return `${upload.handle}#${upload.generation}`;
}
