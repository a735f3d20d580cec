/**
 * The one append operation that every door uses: checks, lease, bytes, sync, commit, digest. What it returns has been acknowledged by
 * the disk; what it throws tells the true offset where that is known.
 *
 * Order of one append: judged by the record (state, size, space) → the one place in this process → the lease in the state store,
 * which judges offset and fence in its transaction → bytes to the segment → sync → commit. Nothing before the lease changes anything.
 */
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { asTransferError, TransferError } from "../errors.ts";
import type { Log } from "../log.ts";
import { type ActiveWrites, closeQuietly } from "./active-writes.ts";
import {
  brokenOff,
  checkAnnounced,
  checkDeclared,
  checksumsOf,
  inactive,
  isFull,
  reserveReached,
  statusFor,
  tooLarge,
  tooMany,
} from "./append-rules.ts";
import type { BlobStore } from "./blob-store.ts";
import { type BodyEnd, BodyWriter } from "./body-writer.ts";
import type { Completion } from "./completion.ts";
import type { Contention } from "./contention.ts";
import type { Appended, AppendRequest, TransferLimits } from "./engine.ts";
import { GatherBudget } from "./gather.ts";
import type { SegmentRecord, StoredStatus, UploadRecord } from "./records.ts";
import { RunningWrite } from "./running-write.ts";
import { type HandedBack, isSmallFile, newSmallName, SmallBody, smallBodyMs } from "./small-files.ts";
import type { CommitOutcome, Liveness, Quota, SmallOutcome, TransferState } from "./state-store.ts";
import { compareWithStored } from "./stored-bytes.ts";
import type { UploadDigests } from "./upload-digests.ts";
import {
  digestMismatch,
  locked,
  offsetMismatch,
  otherFile,
  quotaExceeded,
  toTransfer,
  unknownHandle,
} from "./view.ts";
import { within } from "./within.ts";
import { type Lease, WriteLeases } from "./write-leases.ts";

/** What a crash may lose of bytes that were not acknowledged. */
const checkpointBytes = 64 << 20;
const checkpointMs = 2_000;
/** Room left to the state store on a disk that a body has just filled: it must note how far the body came. */
const giveBackBytes = 256 << 10;
/** Up to here a file that comes in one piece is hashed as it passes: less work than telling the digest thread. */
const inlineDigestBytes = 256 << 10;

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

  constructor(parts: AppenderParts) {
    this.#parts = parts;
    this.#leases = new WriteLeases(parts);
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
    const { state, blobs, digests, limits, quota, liveness } = this.#parts;
    const { upload, segment, held } = lease;
    const owner = liveness.processId;
    const skipBytes = request.resend === true ? upload.offset : 0;
    const room = (upload.sizeBytes ?? limits.maxFileBytes) - upload.offset + skipBytes;
    const checksums = checksumsOf(request);
    const atomic = checksums !== null;
    // Nobody asks for the digest of a part, and the digest of the whole does not follow from it.
    const isPartial = upload.concat === "partial";
    const whole =
      !isPartial && upload.offset === 0 && upload.sizeBytes !== null && upload.sizeBytes <= inlineDigestBytes
        ? createHash("sha256")
        : null;
    const follows = !isPartial && whole === null;
    if (follows) digests.follow(upload);
    const stored =
      skipBytes > 0 ? compareWithStored(blobs, await state.segments(upload.handle), upload) : null;

    let current = upload;
    let committed = segment.length;
    /** Whatever became of a commit, bytes below this may count. */
    let named = segment.length;
    let told = segment.length;
    let checkpointing: Promise<void> | null = null;
    /** Set by the first sync that failed. */
    let lost: TransferError | null = null;
    let checkpointAt = performance.now();
    const startedAt = performance.now();
    const isTime = () => performance.now() - checkpointAt >= checkpointMs;

    const tell = (written: number) => {
      const to = segment.length + written;
      if (follows && to > told) {
        digests.written(
          upload,
          segment.blob,
          segment.blobOffset + told,
          segment.blobOffset + to,
          segment.start + told,
        );
      }
      told = to;
    };
    const body = new BodyWriter({
      stream: request.body.stream,
      skipBytes,
      compare: stored === null ? null : (piece) => stored.next(piece),
      maxBytes: Math.min(room, request.body.lengthBytes ?? room),
      overflow: () => (upload.sizeBytes === null ? tooLarge(limits) : tooMany()),
      openBlob: async () => held?.blob ?? blobs.create(segment.blob),
      position: segment.blobOffset + segment.length,
      budget: this.#budget,
      disposable: request.body.disposable === true,
      before,
      onWritten: (written) => {
        if (!atomic) tell(written);
        const atStake = written - (committed - segment.length);
        if (atStake >= checkpointBytes || isTime()) checkpoint();
        // A disk that is slow to confirm is waited for: what a crash may lose stays bounded.
        return atStake >= 2 * checkpointBytes ? checkpointing : null;
      },
      onPiece:
        checksums === null && whole === null
          ? null
          : (piece) => {
              checksums?.update(piece);
              whole?.update(piece);
            },
    });
    const commit = (
      segmentLength: number,
      rest: { active: boolean; sizeBytes: number | null; status: StoredStatus; sha256: string | null },
    ) => {
      const seconds = (performance.now() - startedAt) / 1000;
      return state.commitWrite({
        handle: upload.handle,
        owner,
        fence: segment.fence,
        seq: segment.seq,
        segmentLength,
        ...rest,
        declareSha256: request.declareSha256 ?? null,
        ttlMs: rest.status === "complete" ? limits.fileTtlMs : limits.uploadTtlMs,
        bytesPerSecond: rest.active && seconds > 0 ? Math.round(body.writtenBytes / seconds) : null,
        quota,
      });
    };
    /**
     * A sync that fails may drop what it could not write, and the next one of the same file succeeds without it (so does Linux). After
     * the first failure nothing of this file counts beyond what is committed, whatever a later sync says; the next write has another.
     */
    const sync = async (): Promise<void> => {
      if (lost !== null) throw lost;
      try {
        await body.blob?.sync();
      } catch (error) {
        lost = asTransferError(error);
        throw lost;
      }
      // The one that ran beside this may have failed meanwhile.
      if (lost !== null) throw lost;
    };
    /** Sync and commit of what is written while more comes. A commit that fails is left to the end of the body, which tries again. */
    const checkpoint = () => {
      const length = segment.length + body.writtenBytes;
      if (atomic || checkpointing !== null || length === committed || body.blob === null) return;
      checkpointAt = performance.now();
      named = length;
      checkpointing = sync()
        .then(() => commit(length, { active: true, sizeBytes: null, status: "receiving", sha256: null }))
        .then(async (outcome) => {
          if (outcome.kind !== "ok") return body.stop();
          committed = length;
          current = outcome.upload;
          if (outcome.leaseRequest !== null) this.#leases.answerRequest(run, outcome.leaseRequest);
          request.onCommitted?.(current.offset);
          if (!(await this.#hasSpace())) body.refuse(reserveReached());
        })
        .catch(() => {
          // What comes from here on could not be kept.
          if (lost !== null) body.refuse(lost);
        })
        .finally(() => {
          checkpointing = null;
        });
    };

    run.attach({
      fence: segment.fence,
      body,
      checkpoint: () => {
        if (atomic || !isTime()) return;
        body.flush();
        checkpoint();
      },
    });
    let clean = false;
    const settle = async (outcome: CommitOutcome, segmentLength: number): Promise<UploadRecord> => {
      switch (outcome.kind) {
        case "ok":
          committed = segmentLength;
          current = outcome.upload;
          return outcome.upload;
        case "fenced":
          throw outcome.upload === null ? unknownHandle() : locked(outcome.upload);
        case "quota":
          throw quotaExceeded(outcome.limit, outcome.used);
        default:
          return outcome satisfies never;
      }
    };

    let verifying = false;
    try {
      request.onAccepted?.();
      body.start();
      let end: BodyEnd;
      let failure: unknown = null;
      try {
        end = await body.done;
        // A stream that ends cleanly before the announced length was cut somewhere on its way.
        if (end === "ended" && body.receivedBytes < (request.body.lengthBytes ?? 0)) end = "aborted";
      } catch (error) {
        // What was written before the fault may still count, unless the fault is the sender's.
        if (atomic || (error instanceof TransferError && error.status < 500)) throw error;
        failure = error;
        end = "aborted";
      }
      await checkpointing;
      if (lost !== null) throw lost;
      if (isFull(failure))
        await body.cut(Math.max(named - segment.length, body.writtenBytes - giveBackBytes)).catch(() => {});
      if (atomic && end !== "ended") throw end === "stopped" ? locked(current) : brokenOff(current);
      checksums?.verify(current.offset);

      const length = segment.length + body.writtenBytes;
      named = length;
      const offset = segment.start + length;
      const sizeBytes = upload.sizeBytes ?? (request.final === true && end === "ended" ? offset : null);
      const reachesEnd = sizeBytes !== null && offset === sizeBytes;
      const complete = reachesEnd && !isPartial;
      if (atomic) tell(body.writtenBytes);
      if (complete) {
        const quick = this.#parts.completion.quickDigest(
          { ...current, offset, sizeBytes },
          whole?.digest("hex") ?? null,
        );
        const [sha256] = await Promise.all([quick, sync()]);
        const declared = upload.declaredSha256 ?? request.declareSha256 ?? null;
        const status = sha256 === null ? "verifying" : statusFor(declared, sha256);
        await settle(await commit(length, { active: false, sizeBytes, status, sha256 }), length);
        verifying = status === "verifying";
      } else if (length > committed || request.declareSizeBytes != null || sizeBytes !== upload.sizeBytes) {
        await sync();
        const found = reachesEnd ? sizeBytes : null;
        await settle(
          await commit(length, { active: false, sizeBytes: found, status: "receiving", sha256: null }),
          length,
        );
      } else {
        await state.releaseWrite(upload.handle, owner, segment.fence);
      }
      clean = failure === null;
      if (failure !== null) throw failure;
      if (!reachesEnd) {
        if (end === "stopped") throw locked(current);
        if (end === "aborted") throw brokenOff(current);
        if (request.final === true) {
          throw new TransferError("size_mismatch", `The body ended after ${offset} of ${sizeBytes} bytes.`, {
            cursor: offset,
          });
        }
      }
    } catch (error) {
      if (!clean) {
        // What can never count must not fill the disk.
        await body.cut(named - segment.length).catch(() => {});
        digests.drop(upload);
        await state.releaseWrite(upload.handle, owner, segment.fence).catch(() => {});
      }
      // Where a commit is unclear no offset is told: HEAD tells the true one.
      const tells =
        error instanceof TransferError &&
        error.code !== "unknown_handle" &&
        error.code !== "storage_unavailable";
      throw tells ? error.with({ cursor: current.offset }) : error;
    } finally {
      await stored?.close().catch(() => {});
      const blob = body.blob ?? held?.blob ?? null;
      if (clean && current.status === "receiving") {
        this.active.hold(upload.handle, {
          fence: segment.fence,
          seq: segment.seq,
          blob,
          since: performance.now(),
        });
      } else closeQuietly(blob);
    }

    this.active.leave(run);
    run.finish();
    return this.#finish(current, lease.now, verifying, body.receivedBytes);
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
