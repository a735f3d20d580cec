/**
 * What happens between processes when one wants an upload that another holds: asking, waiting, and taking over. Nothing here is
 * needed for safety, which the fence alone gives; it decides when a lease may be taken, and how soon.
 */
import type { Log } from "../log.ts";
import type { BlobStore } from "./blob-store.ts";
import type { UploadRecord } from "./records.ts";
import type { Liveness, TransferState } from "./state-store.ts";
import { locked } from "./view.ts";

/** A writer with no byte for this long may be ended by a PATCH, PUT, DELETE or upload_write. */
export const idleWriterMs = 2_000;
/** Longest wait for a holder that was asked to end; then it is fenced off. */
export const endPatienceMs = 5_000;
/** How long a holder has to answer a request that it may refuse. */
const refusalPatienceMs = 1_600;
/** Holders give a sign of life each second while they write; one silent for longer is stopped or hangs. */
const silentMs = 3_000;
const pollMs = 60;

interface Parts {
  readonly state: TransferState;
  readonly blobs: BlobStore;
  readonly liveness: Liveness;
  readonly log: Log;
}

export class Contention {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Makes another holder let go: `end` always succeeds within 5 s; `if_idle` throws `upload_locked` where the holder is
   * receiving bytes. Returns when the lease is free (or was a moment ago: the caller tries again).
   */
  async makeWay(upload: UploadRecord, want: "end" | "if_idle"): Promise<void> {
    const { state, liveness } = this.#parts;
    if (upload.leaseOwner === liveness.processId || (await this.#isGone(upload))) return this.adopt(upload);
    const before = await state.findUpload(upload.handle);
    if (before === null || !stillHeld(before.upload, upload)) return;
    await state.requestLease(upload.handle, upload.fence, want);

    const start = performance.now();
    let lastLook = start;
    const patienceMs = want === "end" ? endPatienceMs : refusalPatienceMs;
    while (performance.now() - start < patienceMs) {
      await new Promise((resolve) => setTimeout(resolve, pollMs));
      const current = await state.findUpload(upload.handle);
      if (current === null || !stillHeld(current.upload, upload)) return;
      // Only the holder knows when its last byte came; it takes the wish away where it goes on.
      if (want === "if_idle" && !current.upload.leaseRequested) throw locked(current.upload);
      if (performance.now() - lastLook > 500) {
        lastLook = performance.now();
        if (await this.#isGone(upload)) return this.adopt(upload);
      }
    }
    if (want === "if_idle") throw locked(upload);
    await this.adopt(upload);
  }

  /**
   * Ends the lease by raising the fence. What the segments are said to hold is compared with what is there: a file that is
   * shorter than its record (a disk that lied about a sync) makes the offset fall back to the truth.
   */
  async adopt(upload: UploadRecord): Promise<void> {
    await this.#parts.state.adoptOrphan(upload.handle, upload.fence, await this.#tornAt(upload));
  }

  /** The same for an upload that nobody is writing, which is left alone where all of it is there. True where it was not. */
  async repair(upload: UploadRecord): Promise<boolean> {
    // A disk that does not even answer says nothing about how much there is.
    const offset = await this.#tornAt(upload).catch(() => null);
    return offset !== null && this.#parts.state.adoptOrphan(upload.handle, upload.fence, offset);
  }

  /** How many bytes in a row are really there, where that is less than recorded; else null. */
  async #tornAt(upload: UploadRecord): Promise<number | null> {
    const { state, blobs, log } = this.#parts;
    for (const { blob, blobOffset, start, length } of await state.segments(upload.handle)) {
      const there = ((await blobs.stat(blob))?.sizeBytes ?? 0) - blobOffset;
      if (there >= length) continue;
      const offset = start + Math.max(0, there);
      log({
        level: "error",
        event: "upload.torn",
        handle: upload.handle,
        offset,
        missingBytes: upload.offset - offset,
      });
      return offset;
    }
    return null;
  }

  /** Dead for certain, or silent for longer than a holder ever is. A sign of life from the future is none. */
  async #isGone(upload: UploadRecord): Promise<boolean> {
    const { state, liveness } = this.#parts;
    const owner = upload.leaseOwner;
    if (owner === null || (await liveness.isDead(owner))) return true;
    const { processes, now } = await state.processes();
    const seenAt = processes.find((process) => process.id === owner)?.seenAt;
    return seenAt === undefined || Math.abs(now - seenAt) > silentMs;
  }
}

function stillHeld(current: UploadRecord, before: UploadRecord): boolean {
  return current.leaseActive && current.fence === before.fence;
}
