/**
 * One body written under a lease: bytes to the segment, checkpoints while more comes, sync and commit at its end. What `run` returns has
 * been acknowledged by the disk; what it throws tells the true offset where that is known.
 */
import { createHash, type Hash } from "node:crypto";
import { asTransferError, TransferError } from "../errors.ts";
import { type ActiveWrites, closeQuietly } from "./active-writes.ts";
import {
  brokenOff,
  checksumsOf,
  isFull,
  reserveReached,
  statusFor,
  tooLarge,
  tooMany,
} from "./append-rules.ts";
import type { BlobStore } from "./blob-store.ts";
import type { BodyChecksums } from "./body-checksum.ts";
import { type BodyEnd, BodyWriter } from "./body-writer.ts";
import type { Completion } from "./completion.ts";
import type { AppendRequest, TransferLimits } from "./engine.ts";
import type { GatherBudget } from "./gather.ts";
import type { StoredStatus, UploadRecord } from "./records.ts";
import type { RunningWrite } from "./running-write.ts";
import type { HandedBack } from "./small-files.ts";
import type { CommitOutcome, LeaseRequestKind, Liveness, Quota, TransferState } from "./state-store.ts";
import { compareWithStored } from "./stored-bytes.ts";
import type { UploadDigests } from "./upload-digests.ts";
import { locked, quotaExceeded, unknownHandle } from "./view.ts";
import type { Lease } from "./write-leases.ts";

/** What a crash may lose of bytes that were not acknowledged. */
const checkpointBytes = 64 << 20;
const checkpointMs = 2_000;
/** Room left to the state store on a disk that a body has just filled: it must note how far the body came. */
const giveBackBytes = 256 << 10;
/** Up to here a file that comes in one piece is hashed as it passes: less work than telling the digest thread. */
const inlineDigestBytes = 256 << 10;

export interface LeasedWriteParts {
  readonly state: TransferState;
  readonly blobs: BlobStore;
  readonly liveness: Liveness;
  readonly digests: UploadDigests;
  readonly completion: Completion;
  readonly limits: TransferLimits;
  readonly quota: Quota;
  readonly budget: GatherBudget;
  readonly active: ActiveWrites;
  readonly hasSpace: () => Promise<boolean>;
  /** Another process asks for the lease of this write. */
  readonly answerRequest: (run: RunningWrite, kind: LeaseRequestKind) => void;
}

export interface Written {
  readonly upload: UploadRecord;
  /** Complete, with its digest to come. */
  readonly verifying: boolean;
  readonly receivedBytes: number;
}

interface Ending {
  readonly active: boolean;
  readonly sizeBytes: number | null;
  readonly status: StoredStatus;
  readonly sha256: string | null;
}

const stillReceiving = (sizeBytes: number | null, active: boolean): Ending => ({
  active,
  sizeBytes,
  status: "receiving",
  sha256: null,
});

/** To be run once. */
export class LeasedWrite {
  readonly #parts: LeasedWriteParts;
  readonly #run: RunningWrite;
  readonly #lease: Lease;
  readonly #request: AppendRequest;
  readonly #body: BodyWriter;
  readonly #checksums: BodyChecksums | null;
  /** Digest of a small file that comes in one piece. */
  readonly #whole: Hash | null;
  /** The digest thread follows what is written. */
  readonly #follows: boolean;
  /** Bytes at the start of the body that are stored already. */
  readonly #skipBytes: number;
  readonly #startedAt = performance.now();

  /** The record as last committed. */
  #current: UploadRecord;
  /** Bytes of the segment that are committed. */
  #committed: number;
  /** Whatever became of a commit, bytes of the segment below this may count. */
  #named: number;
  /** Bytes of the segment that the digest thread knows of. */
  #told: number;
  #checkpointing: Promise<void> | null = null;
  #checkpointAt = performance.now();
  /** Set by the first sync that failed. */
  #lost: TransferError | null = null;
  /** Where the body begins with what is stored. */
  #compared: ReturnType<typeof compareWithStored> | null = null;

  constructor(
    parts: LeasedWriteParts,
    run: RunningWrite,
    lease: Lease,
    request: AppendRequest,
    before: HandedBack | null,
  ) {
    const { upload, segment } = lease;
    this.#parts = parts;
    this.#run = run;
    this.#lease = lease;
    this.#request = request;
    this.#skipBytes = request.resend === true ? upload.offset : 0;
    this.#checksums = checksumsOf(request);
    // Nobody asks for the digest of a part, and the digest of the whole does not follow from it.
    const needsDigest = upload.concat !== "partial";
    const isInline =
      upload.offset === 0 && upload.sizeBytes !== null && upload.sizeBytes <= inlineDigestBytes;
    this.#whole = needsDigest && isInline ? createHash("sha256") : null;
    this.#follows = needsDigest && !isInline;
    this.#current = upload;
    this.#committed = segment.length;
    this.#named = segment.length;
    this.#told = segment.length;
    this.#body = this.#bodyWriter(before);
  }

  /** Bytes that carry a digest count all or not at all. */
  get #isAtomic(): boolean {
    return this.#checksums !== null;
  }

  /** Throws TransferError. Whatever becomes of it, the lease is given back or kept for the next write of this process. */
  async run(): Promise<Written> {
    const { upload, segment } = this.#lease;
    if (this.#follows) this.#parts.digests.follow(upload);
    this.#run.attach({
      fence: segment.fence,
      body: this.#body,
      checkpoint: () => {
        if (this.#isAtomic || !this.#isCheckpointDue()) return;
        this.#body.flush();
        this.#checkpoint();
      },
    });
    let clean = false;
    try {
      const { end, failure } = await this.#receive();
      const { offset, sizeBytes, reachesEnd, verifying } = await this.#conclude(end);
      clean = failure === null;
      if (failure !== null) throw failure;
      if (!reachesEnd) this.#refuseHalf(end, offset, sizeBytes);
      return { upload: this.#current, verifying, receivedBytes: this.#body.receivedBytes };
    } catch (error) {
      if (!clean) await this.#giveUp();
      throw this.#telling(error);
    } finally {
      await this.#compared?.close().catch(() => {});
      this.#keepOrClose(clean);
    }
  }

  #bodyWriter(before: HandedBack | null): BodyWriter {
    const { blobs, limits, budget } = this.#parts;
    const { upload, segment, held } = this.#lease;
    const { body } = this.#request;
    const [checksums, whole, skipBytes] = [this.#checksums, this.#whole, this.#skipBytes];
    const room = (upload.sizeBytes ?? limits.maxFileBytes) - upload.offset + skipBytes;
    return new BodyWriter({
      stream: body.stream,
      skipBytes,
      compare: skipBytes === 0 ? null : (piece) => this.#compare(piece),
      maxBytes: Math.min(room, body.lengthBytes ?? room),
      overflow: () => (upload.sizeBytes === null ? tooLarge(limits) : tooMany()),
      openBlob: async () => held?.blob ?? blobs.create(segment.blob),
      position: segment.blobOffset + segment.length,
      budget,
      disposable: body.disposable === true,
      before,
      onWritten: (written) => this.#onWritten(written),
      onPiece:
        checksums === null && whole === null
          ? null
          : (piece) => {
              checksums?.update(piece);
              whole?.update(piece);
            },
    });
  }

  async #compare(piece: Uint8Array): Promise<void> {
    if (this.#compared === null) throw new Error("what is stored was not looked up");
    await this.#compared.next(piece);
  }

  #onWritten(writtenBytes: number): Promise<void> | null {
    if (!this.#isAtomic) this.#tellDigest(writtenBytes);
    const atStake = this.#lease.segment.length + writtenBytes - this.#committed;
    if (atStake >= checkpointBytes || this.#isCheckpointDue()) this.#checkpoint();
    // A disk that is slow to confirm is waited for: what a crash may lose stays bounded.
    return atStake >= 2 * checkpointBytes ? this.#checkpointing : null;
  }

  #tellDigest(writtenBytes: number): void {
    const { upload, segment } = this.#lease;
    const to = segment.length + writtenBytes;
    if (this.#follows && to > this.#told) {
      const { blob, blobOffset, start } = segment;
      const from = this.#told;
      this.#parts.digests.written(upload, blob, blobOffset + from, blobOffset + to, start + from);
    }
    this.#told = to;
  }

  #isCheckpointDue(): boolean {
    return performance.now() - this.#checkpointAt >= checkpointMs;
  }

  /** Sync and commit of what is written while more comes. A commit that fails is left to the end of the body, which tries again. */
  #checkpoint(): void {
    const length = this.#lease.segment.length + this.#body.writtenBytes;
    const isBusy = this.#checkpointing !== null;
    if (this.#isAtomic || isBusy || length === this.#committed || this.#body.blob === null) return;
    this.#checkpointAt = performance.now();
    this.#named = length;
    this.#checkpointing = this.#commitPart(length)
      .catch(() => {
        // What comes from here on could not be kept.
        if (this.#lost !== null) this.#body.refuse(this.#lost);
      })
      .finally(() => {
        this.#checkpointing = null;
      });
  }

  async #commitPart(length: number): Promise<void> {
    await this.#sync();
    const outcome = await this.#commit(length, stillReceiving(null, true));
    if (outcome.kind !== "ok") return this.#body.stop();
    this.#committed = length;
    this.#current = outcome.upload;
    if (outcome.leaseRequest !== null) this.#parts.answerRequest(this.#run, outcome.leaseRequest);
    this.#request.onCommitted?.(this.#current.offset);
    if (!(await this.#parts.hasSpace())) this.#body.refuse(reserveReached());
  }

  /**
   * A sync that fails may drop what it could not write, and the next one of the same file succeeds without it (so does Linux). After
   * the first failure nothing of this file counts beyond what is committed, whatever a later sync says; the next write has another.
   */
  async #sync(): Promise<void> {
    if (this.#lost !== null) throw this.#lost;
    try {
      await this.#body.blob?.sync();
    } catch (error) {
      this.#lost = asTransferError(error);
      throw this.#lost;
    }
    // The one that ran beside this may have failed meanwhile.
    if (this.#lost !== null) throw this.#lost;
  }

  #commit(segmentLength: number, ending: Ending): Promise<CommitOutcome> {
    const { state, limits, quota, liveness } = this.#parts;
    const { upload, segment } = this.#lease;
    const seconds = (performance.now() - this.#startedAt) / 1000;
    return state.commitWrite({
      handle: upload.handle,
      owner: liveness.processId,
      fence: segment.fence,
      seq: segment.seq,
      segmentLength,
      ...ending,
      declareSha256: this.#request.declareSha256 ?? null,
      ttlMs: ending.status === "complete" ? limits.fileTtlMs : limits.uploadTtlMs,
      bytesPerSecond: ending.active && seconds > 0 ? Math.round(this.#body.writtenBytes / seconds) : null,
      quota,
    });
  }

  async #commitEnd(length: number, ending: Omit<Ending, "active">): Promise<void> {
    const outcome = await this.#commit(length, { ...ending, active: false });
    switch (outcome.kind) {
      case "ok":
        this.#committed = length;
        this.#current = outcome.upload;
        return;
      case "fenced":
        throw outcome.upload === null ? unknownHandle() : locked(outcome.upload);
      case "quota":
        throw quotaExceeded(outcome.limit, outcome.used);
      default:
        outcome satisfies never;
    }
  }

  /** The whole body, as far as it comes. `failure`: a fault of the disk, before which bytes were written that may still count. */
  async #receive(): Promise<{ end: BodyEnd; failure: unknown }> {
    const body = this.#body;
    const { state, blobs } = this.#parts;
    const { upload } = this.#lease;
    const announced = this.#request.body.lengthBytes ?? 0;
    if (this.#skipBytes > 0)
      this.#compared = compareWithStored(blobs, await state.segments(upload.handle), upload);
    let end: BodyEnd;
    let failure: unknown = null;
    this.#request.onAccepted?.();
    body.start();
    try {
      end = await body.done;
      // A stream that ends cleanly before the announced length was cut somewhere on its way.
      if (end === "ended" && body.receivedBytes < announced) end = "aborted";
    } catch (error) {
      // What was written before the fault may still count, unless the fault is the sender's.
      if (this.#isAtomic || (error instanceof TransferError && error.status < 500)) throw error;
      failure = error;
      end = "aborted";
    }
    await this.#checkpointing;
    if (this.#lost !== null) throw this.#lost;
    if (isFull(failure)) {
      const free = Math.max(this.#named - this.#lease.segment.length, body.writtenBytes - giveBackBytes);
      await body.cut(free).catch(() => {});
    }
    if (this.#isAtomic && end !== "ended")
      throw end === "stopped" ? locked(this.#current) : brokenOff(this.#current);
    this.#checksums?.verify(this.#current.offset);
    return { end, failure };
  }

  /** Commits what has been written; nothing of it counts before. */
  async #conclude(end: BodyEnd) {
    const { state, liveness } = this.#parts;
    const { upload, segment } = this.#lease;
    const length = segment.length + this.#body.writtenBytes;
    const offset = segment.start + length;
    const endsHere = this.#request.final === true && end === "ended";
    const sizeBytes = upload.sizeBytes ?? (endsHere ? offset : null);
    const reachesEnd = sizeBytes !== null && offset === sizeBytes;
    const declares = this.#request.declareSizeBytes != null || sizeBytes !== upload.sizeBytes;
    let verifying = false;
    this.#named = length;
    if (this.#isAtomic) this.#tellDigest(this.#body.writtenBytes);
    if (reachesEnd && upload.concat !== "partial") {
      verifying = await this.#complete(length, offset, sizeBytes);
    } else if (length > this.#committed || declares) {
      await this.#sync();
      await this.#commitEnd(length, stillReceiving(reachesEnd ? sizeBytes : null, false));
    } else {
      await state.releaseWrite(upload.handle, liveness.processId, segment.fence);
    }
    return { offset, sizeBytes, reachesEnd, verifying };
  }

  /** @returns whether the digest is still to come. */
  async #complete(length: number, offset: number, sizeBytes: number): Promise<boolean> {
    const quick = this.#parts.completion.quickDigest(
      { ...this.#current, offset, sizeBytes },
      this.#whole?.digest("hex") ?? null,
    );
    const [sha256] = await Promise.all([quick, this.#sync()]);
    const declared = this.#lease.upload.declaredSha256 ?? this.#request.declareSha256 ?? null;
    const status = sha256 === null ? "verifying" : statusFor(declared, sha256);
    await this.#commitEnd(length, { sizeBytes, status, sha256 });
    return status === "verifying";
  }

  /** What is committed stays; the sender hears how far it came. */
  #refuseHalf(end: BodyEnd, offset: number, sizeBytes: number | null): void {
    if (end === "stopped") throw locked(this.#current);
    if (end === "aborted") throw brokenOff(this.#current);
    if (this.#request.final !== true) return;
    throw new TransferError("size_mismatch", `The body ended after ${offset} of ${sizeBytes} bytes.`, {
      cursor: offset,
    });
  }

  async #giveUp(): Promise<void> {
    const { state, digests, liveness } = this.#parts;
    const { upload, segment } = this.#lease;
    // What can never count must not fill the disk.
    await this.#body.cut(this.#named - segment.length).catch(() => {});
    digests.drop(upload);
    await state.releaseWrite(upload.handle, liveness.processId, segment.fence).catch(() => {});
  }

  /** Where a commit is unclear no offset is told: HEAD tells the true one. */
  #telling(error: unknown): unknown {
    const tells =
      error instanceof TransferError &&
      error.code !== "unknown_handle" &&
      error.code !== "storage_unavailable";
    return tells ? error.with({ cursor: this.#current.offset }) : error;
  }

  #keepOrClose(clean: boolean): void {
    const { upload, segment, held } = this.#lease;
    const blob = this.#body.blob ?? held?.blob ?? null;
    const { status, sizeBytes, offset } = this.#current;
    // A part with all its bytes is `receiving` still, and takes none.
    if (!clean || status !== "receiving" || offset === sizeBytes) closeQuietly(blob);
    else {
      const { fence, seq } = segment;
      this.#parts.active.hold(upload.handle, { fence, seq, blob, since: performance.now() });
    }
  }
}
