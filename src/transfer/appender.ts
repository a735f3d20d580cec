/**
 * The one append operation that every door uses: checks, lease, bytes, sync, commit, digest. What it returns has been acknowledged by
 * the disk; what it throws tells the true offset where that is known.
 *
 * Order of one append: judged by the record (state, size, space) → the one place in this process → the lease in the state store,
 * which judges offset and fence in its transaction → bytes to the segment → sync → commit. Nothing before the lease changes anything.
 */
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { TransferError } from "../errors.ts";
import type { Log } from "../log.ts";
import type { ActiveWrites } from "./active-writes.ts";
import {
  brokenOff,
  checkAnnounced,
  checkDeclared,
  checksumsOf,
  inactive,
  reserveReached,
  tooMany,
} from "./append-rules.ts";
import type { BlobStore } from "./blob-store.ts";
import { BodyWriter } from "./body-writer.ts";
import type { Completion } from "./completion.ts";
import type { Contention } from "./contention.ts";
import type { Appended, AppendRequest, TransferLimits } from "./engine.ts";
import { GatherBudget } from "./gather.ts";
import { LeasedWrite, type LeasedWriteParts } from "./leased-write.ts";
import type { SegmentRecord, UploadRecord } from "./records.ts";
import { RunningWrite } from "./running-write.ts";
import { type HandedBack, isSmallFile, newSmallName, SmallBody, smallBodyMs } from "./small-files.ts";
import type { Liveness, Quota, SmallOutcome, TransferState } from "./state-store.ts";
import { compareWithStored } from "./stored-bytes.ts";
import type { UploadDigests } from "./upload-digests.ts";
import { digestMismatch, locked, offsetMismatch, otherFile, toTransfer, unknownHandle } from "./view.ts";
import { within } from "./within.ts";
import { type Lease, WriteLeases } from "./write-leases.ts";

export interface AppenderParts {
  readonly state: TransferState;
  readonly blobs: BlobStore;
  readonly liveness: Liveness;
  readonly contention: Contention;
  readonly digests: UploadDigests;
  readonly completion: Completion;
  readonly limits: TransferLimits;
  readonly quota: Quota;
  readonly minFreeBytes: number;
  readonly log: Log;
}

export class Appender {
  readonly #leases: WriteLeases;
  readonly #parts: AppenderParts;
  readonly #budget = new GatherBudget();
  readonly #writeParts: LeasedWriteParts;

  constructor(parts: AppenderParts) {
    this.#parts = parts;
    this.#leases = new WriteLeases(parts);
    this.#writeParts = {
      ...parts,
      budget: this.#budget,
      active: this.#leases.active,
      hasSpace: () => this.#hasSpace(),
      answerRequest: (run, kind) => this.#leases.answerRequest(run, kind),
    };
  }

  get active(): ActiveWrites {
    return this.#leases.active;
  }

  /** See `WriteLeases.signOfLife`. */
  signOfLife(): Promise<void> {
    return this.#leases.signOfLife();
  }

  /** Free space, checked before anything is created or written. */
  async checkSpace(cursor?: number): Promise<void> {
    if (await this.#hasSpace()) return;
    throw reserveReached(cursor);
  }

  async #hasSpace(): Promise<boolean> {
    return (await this.#parts.blobs.freeBytes()) >= this.#parts.minFreeBytes;
  }

  /** Appends to an upload just looked up; `upload` is receiving and not expired. */
  async append(upload: UploadRecord, request: AppendRequest): Promise<Appended> {
    // First of all the offset: who learns the true one has no reason to give up.
    if (request.resend !== true && !upload.leaseActive && request.offset !== upload.offset) {
      throw offsetMismatch(upload, request.offset);
    }
    checkAnnounced(upload, request, this.#parts.limits);
    checkDeclared(upload, request);
    await this.checkSpace(upload.offset);
    const run = new RunningWrite(upload.handle);
    const claimed = await this.active.claim(run);
    if (claimed === "busy") throw locked(upload);
    try {
      const abandonedFence = claimed === "claimed" ? null : claimed.abandonedFence;
      let rest = request;
      let before: HandedBack | null = null;
      if (abandonedFence === null && isSmallFile(upload, request)) {
        const stored = await this.#storeSmall(run, upload, request);
        if ("transfer" in stored) return stored;
        before = stored;
        const { onAccepted: _, ...accepted } = request;
        rest = accepted;
      }
      const lease = await this.#leases
        .take(upload, rest, abandonedFence)
        .catch((error: unknown) => this.#comeLate(error, upload, rest));
      return "transfer" in lease ? lease : await this.#write(run, lease, rest, before);
    } finally {
      this.active.leave(run);
      run.finish();
    }
  }

  /**
   * A whole small file: read first, then stored in one commit, which judges offset and lease. Where it does not come at once, what has
   * come is back in the stream, and the body is to be written as any other.
   */
  async #storeSmall(
    run: RunningWrite,
    upload: UploadRecord,
    request: AppendRequest,
  ): Promise<Appended | HandedBack> {
    const body = this.#startSmall(run, request);
    const inTime = await within<Buffer | null>(body.bytes, smallBodyMs, null);
    const handedBack = inTime === null ? body.handBack() : null;
    if (handedBack !== null) return handedBack;
    const bytes = this.#checkSmall(inTime ?? (await body.bytes), request);
    if (bytes.byteLength < (request.body.lengthBytes ?? 0)) {
      const kept = await this.#keepPart(upload, request, bytes);
      throw run.wasStopped ? locked(kept) : brokenOff(kept);
    }
    const outcome = await this.writeSmall(upload.handle, upload.generation, bytes);
    switch (outcome.kind) {
      case "ok":
        return this.#finish(outcome.upload, outcome.now, false, bytes.byteLength);
      case "unknown":
        throw unknownHandle();
      case "offset":
        throw offsetMismatch(outcome.upload, request.offset);
      case "locked":
        throw locked(outcome.upload);
      case "inactive":
        return this.#comeLate(inactive(outcome.upload, outcome.now, upload), upload, {
          ...request,
          body: { stream: Readable.from([bytes]), lengthBytes: bytes.byteLength },
          onAccepted: () => {},
        });
      default:
        return outcome satisfies never;
    }
  }

  /** A resend that another request has just completed is compared, as it would have been a moment later. */
  async #comeLate(refused: unknown, { handle }: UploadRecord, request: AppendRequest): Promise<Appended> {
    const isLate =
      request.resend === true && refused instanceof TransferError && refused.code === "not_active";
    const found = isLate ? await this.#parts.state.findUpload(handle) : null;
    if (found?.upload.status !== "complete") throw refused;
    const { declareSha256 = null } = request;
    if (declareSha256 !== null && declareSha256 !== found.upload.sha256)
      throw otherFile(found.upload, declareSha256);
    return this.compareOnly(found.upload, found.now, request);
  }

  /** What has come of a small file that broke off counts like that of any other. */
  async #keepPart(upload: UploadRecord, request: AppendRequest, bytes: Buffer): Promise<UploadRecord> {
    if (bytes.byteLength === 0 || checksumsOf(request) !== null) return upload;
    const body = { stream: Readable.from([bytes]), lengthBytes: bytes.byteLength };
    const part: AppendRequest = { offset: 0, body, declareSizeBytes: request.declareSizeBytes ?? null };
    const lease = await this.#leases.take(upload, part, null);
    const { transfer } = await this.#write(new RunningWrite(upload.handle), lease, part);
    return { ...lease.upload, offset: transfer.offset };
  }

  /** The body, with its digests checked; shorter than announced where it broke off. */
  async readSmall(request: AppendRequest): Promise<Buffer> {
    return this.#checkSmall(await this.#startSmall(null, request).bytes, request);
  }

  #startSmall(run: RunningWrite | null, request: AppendRequest): SmallBody {
    const body = new SmallBody(request.body.stream, request.body.lengthBytes ?? 0);
    run?.attach({ fence: 0, body, checkpoint: () => {} });
    request.onAccepted?.();
    body.start();
    return body;
  }

  #checkSmall(bytes: Buffer, request: AppendRequest): Buffer {
    const checksums = checksumsOf(request);
    if (checksums === null || bytes.byteLength < (request.body.lengthBytes ?? 0)) return bytes;
    checksums.update(bytes);
    checksums.verify(0);
    return bytes;
  }

  writeSmall(handle: string, generation: number, bytes: Buffer): Promise<SmallOutcome> {
    return this.#parts.state.storeSmall({
      handle,
      generation,
      bytes,
      sha256: createHash("sha256").update(bytes).digest("hex"),
      blob: newSmallName(handle),
      fileTtlMs: this.#parts.limits.fileTtlMs,
      uploadTtlMs: this.#parts.limits.uploadTtlMs,
    });
  }

  /** What follows a small file written with the creation of its upload. */
  finishSmall(upload: UploadRecord, now: number, receivedBytes: number): Promise<Appended> {
    return this.#finish(upload, now, false, receivedBytes);
  }

  /** The same for an upload just created with its lease taken. */
  async appendFirst(
    upload: UploadRecord,
    segment: SegmentRecord,
    now: number,
    request: AppendRequest,
  ): Promise<Appended> {
    const run = new RunningWrite(upload.handle);
    await this.active.claim(run);
    try {
      return await this.#write(run, { upload, segment, held: null, now }, request);
    } finally {
      this.active.leave(run);
      run.finish();
    }
  }

  /** A resend of a complete upload: the body must be the file. Nothing is written. */
  async compareOnly(upload: UploadRecord, now: number, request: AppendRequest): Promise<Appended> {
    checkAnnounced(upload, request, this.#parts.limits);
    const checksums = checksumsOf(request);
    const stored = compareWithStored(
      this.#parts.blobs,
      await this.#parts.state.segments(upload.handle),
      upload,
    );
    const body = new BodyWriter({
      stream: request.body.stream,
      skipBytes: upload.offset,
      compare: (piece) => stored.next(piece),
      maxBytes: upload.offset,
      overflow: tooMany,
      openBlob: () => Promise.reject(new Error("a comparison writes nothing")),
      position: 0,
      budget: this.#budget,
      disposable: request.body.disposable === true,
      before: null,
      onWritten: () => null,
      onPiece: checksums === null ? null : (piece) => checksums.update(piece),
    });
    try {
      request.onAccepted?.();
      body.start();
      const end = await body.done;
      if (end !== "ended" || body.receivedBytes !== upload.offset) throw brokenOff(upload);
      checksums?.verify(upload.offset);
    } catch (error) {
      throw error instanceof TransferError ? error.with({ cursor: upload.offset }) : error;
    } finally {
      await stored.close().catch(() => {});
    }
    return { transfer: toTransfer(upload, now), receivedBytes: body.receivedBytes };
  }

  /** An empty body must have the digests of an empty body. */
  checkEmpty(upload: UploadRecord, request: AppendRequest): void {
    checksumsOf(request)?.verify(upload.offset);
  }

  async close(): Promise<void> {
    await this.active.close();
  }

  async #write(
    run: RunningWrite,
    lease: Lease,
    request: AppendRequest,
    before: HandedBack | null = null,
  ): Promise<Appended> {
    const write = new LeasedWrite(this.#writeParts, run, lease, request, before);
    const { upload, verifying, receivedBytes } = await write.run();
    this.active.leave(run);
    run.finish();
    return this.#finish(upload, lease.now, verifying, receivedBytes);
  }

  /** After the last byte is committed: the digest, where it is not there yet, and the answer. */
  async #finish(
    upload: UploadRecord,
    now: number,
    verifying: boolean,
    receivedBytes: number,
  ): Promise<Appended> {
    let final = upload;
    if (verifying) final = await this.#parts.completion.verify(upload, upload.declaredSha256 !== null);
    else if (final.status !== "receiving") this.#parts.completion.completed(final);
    if (final.status === "mismatch") throw digestMismatch(final);
    return { transfer: toTransfer(final, now), receivedBytes };
  }
}
