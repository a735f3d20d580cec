/**
 * From the last byte to a known digest: quickly where the digest followed the bytes, else by one pass over the file in the background.
 * Also rewrites a finished upload of many segments into one blob.
 */

import type { DigestFollower } from "../integrity/digest-follower.ts";
import type { Log } from "../log.ts";
import type { BlobStore } from "./blob-store.ts";
import type { TransferLimits } from "./engine.ts";
import { newBlobName } from "./identifiers.ts";
import type { SegmentRecord, UploadRecord } from "./records.ts";
import type { Liveness, TransferState } from "./state-store.ts";
import { StoredBytes } from "./stored-bytes.ts";
import type { UploadDigests } from "./upload-digests.ts";
import { within } from "./within.ts";

/** Within this the digest joins the commit of the last byte; later it costs a commit of its own. */
const quickMs = 250;
/** The last request waits for the digest: this long where one was declared, and shortly as a courtesy where not. */
const declaredWaitMs = 10_000;
const courtesyWaitMs = 2_000;
/** More segments than this are rewritten into one. */
export const maxSegments = 16;
const verificationsAtOnce = 4;
const maxQueued = 10_000;
const copyBytes = 1 << 20;
/** Well within the grace after which what nothing names is removed, and within the shorter one of a full disk. */
const announceAgainMs = 20_000;

interface Parts {
  readonly state: TransferState;
  readonly blobs: BlobStore;
  readonly digests: UploadDigests;
  readonly follower: DigestFollower;
  readonly liveness: Liveness;
  readonly limits: TransferLimits;
  readonly minFreeBytes: number;
  readonly log: Log;
  /** After a change of status by this process. */
  readonly onSettled: (handle: string) => void;
}

export class Completion {
  readonly #parts: Parts;
  readonly #verifying = new Map<string, Promise<UploadRecord>>();
  readonly #compacting = new Map<string, Promise<void>>();
  readonly #queue: (() => void)[] = [];
  #running = 0;
  #closed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** The digest of all `offset` bytes, if it is there in a moment; else null. */
  async quickDigest(upload: UploadRecord, inline: string | null): Promise<string | null> {
    if (inline !== null) return inline;
    return within(this.#parts.digests.digest(upload, upload.offset), quickMs, null);
  }

  /** Starts the verification of an upload that this process just brought to `verifying`, and waits a while for its end. */
  async verify(upload: UploadRecord, declared: boolean): Promise<UploadRecord> {
    return within(this.start(upload), declared ? declaredWaitMs : courtesyWaitMs, upload);
  }

  /** Verifies in the background; once for each upload however often it is called. Resolves with the record as it is then; never rejects. */
  start(upload: UploadRecord): Promise<UploadRecord> {
    const running = this.#verifying.get(upload.handle);
    if (running !== undefined) return running;
    const work = this.#verifyInTurn(upload)
      .catch((error: unknown) => {
        // It stays `verifying`; the next sweep claims it again.
        this.#parts.log({
          level: "error",
          event: "verification.failed",
          handle: upload.handle,
          error: String(error),
        });
        return upload;
      })
      .finally(() => this.#verifying.delete(upload.handle));
    this.#verifying.set(upload.handle, work);
    return work;
  }

  isVerifying(handle: string): boolean {
    return this.#verifying.has(handle);
  }

  /** To be called once an upload has its digest: frees what followed it, and tidies its segments. */
  completed(upload: UploadRecord): void {
    this.#parts.digests.drop(upload);
    this.#parts.onSettled(upload.handle);
    if (upload.status === "complete") void this.compact(upload);
  }

  /** Rewrites a complete upload into one blob if it has more segments than this. Never rejects. */
  compact(upload: UploadRecord, above = maxSegments): Promise<void> {
    const running = this.#compacting.get(upload.handle);
    if (running !== undefined) return running;
    const work = this.#compactNow(upload, above)
      .catch((error: unknown) => {
        this.#parts.log({
          level: "warn",
          event: "compaction.failed",
          handle: upload.handle,
          error: String(error),
        });
      })
      .finally(() => this.#compacting.delete(upload.handle));
    this.#compacting.set(upload.handle, work);
    return work;
  }

  /** An empty file to point at: an upload of no bytes may have none. It is garbage from the start. */
  async emptyFile(upload: UploadRecord): Promise<string | null> {
    const { state, blobs } = this.#parts;
    const name = newBlobName(upload.handle);
    await state.announceBlob(name);
    await (await blobs.create(name)).close();
    return blobs.path(name);
  }

  /** Waits for what runs; what waits in turn is left for another process or the next start. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const go of this.#queue.splice(0)) go();
    await Promise.all([...this.#verifying.values(), ...this.#compacting.values()]);
  }

  async #verifyInTurn(upload: UploadRecord): Promise<UploadRecord> {
    if (this.#running >= verificationsAtOnce) {
      if (this.#queue.length >= maxQueued) return upload;
      await new Promise<void>((resolve) => this.#queue.push(resolve));
    }
    this.#running += 1;
    try {
      return this.#closed ? upload : await this.#verifyNow(upload);
    } finally {
      this.#running -= 1;
      this.#queue.shift()?.();
    }
  }

  async #verifyNow(upload: UploadRecord): Promise<UploadRecord> {
    const { digests, state, limits, log } = this.#parts;
    // Twice: what was followed so far may turn out unusable, and then the file is read from its start.
    let sha256: string | null = null;
    for (let attempt = 0; attempt < 2 && sha256 === null && !this.#closed; attempt += 1) {
      if (attempt > 0) digests.drop(upload);
      digests.follow(upload);
      sha256 = await digests.digest(upload, upload.offset);
    }
    if (this.#closed && sha256 === null) return upload;
    if (sha256 === null) throw new Error("the stored bytes could not be read");
    const status =
      upload.declaredSha256 === null || upload.declaredSha256 === sha256 ? "complete" : "mismatch";
    const ttlMs = status === "complete" ? limits.fileTtlMs : limits.uploadTtlMs;
    const settled = await state.settle(upload.handle, upload.generation, { status, sha256, ttlMs });
    if (settled === null) {
      digests.drop(upload);
      return (await state.findUpload(upload.handle))?.upload ?? upload;
    }
    log({ level: "info", event: "upload.verified", handle: upload.handle, status });
    this.completed(settled);
    return settled;
  }

  async #compactNow(upload: UploadRecord, above: number): Promise<void> {
    const { state, blobs, minFreeBytes } = this.#parts;
    const segments = await state.segments(upload.handle);
    if (segments.length <= above || this.#closed) return;
    // The copy stands beside the original for an hour. Where it would take the room kept for others the segments stay.
    if ((await blobs.freeBytes()) - upload.offset < minFreeBytes) return;
    const name = newBlobName(upload.handle);
    await state.announceBlob(name);
    // Announced, it is garbage that nothing names yet: it must not be as old as garbage gets before it is finished.
    const announcing = setInterval(() => state.announceBlob(name).catch(() => {}), announceAgainMs);
    try {
      await this.#copyInto(name, upload, segments).catch(async (error: unknown) => {
        // Nothing names it yet, and a disk that is full needs the room now.
        await blobs.remove(name);
        throw error;
      });
      if (!this.#closed)
        await state.replaceSegments(upload.handle, upload.generation, { blob: name, length: upload.offset });
    } finally {
      clearInterval(announcing);
    }
  }

  /** Writes the segments one after the other into one blob, and makes sure that it is the file. */
  async #copyInto(name: string, upload: UploadRecord, segments: readonly SegmentRecord[]): Promise<void> {
    const { blobs, follower } = this.#parts;
    const source = new StoredBytes(blobs, segments);
    const target = await blobs.create(name);
    try {
      const piece = Buffer.allocUnsafeSlow(copyBytes);
      for (let position = 0; position < upload.offset; ) {
        if (this.#closed) return;
        const got = await source.read(piece, position);
        await target.write([piece.subarray(0, got)], position);
        position += got;
      }
      await target.sync();
    } finally {
      await source.close();
      await target.close();
    }
    const path = blobs.path(name);
    if (path !== null) {
      // The copy counts only if it is the file: what is replaced is gone an hour later.
      const key = `compaction ${name}`;
      follower.advance(key, path, 0, upload.offset);
      const { hex } = await follower.digest(key).finally(() => follower.drop(key));
      if (hex !== upload.sha256) throw new Error("the copy has another digest than the upload");
    }
  }
}
