/**
 * The leases of the writes of this process: taking them from the state store, keeping them alive while bytes come, and giving way to
 * other processes that ask.
 */
import { TransferError } from "../errors.ts";
import { type ActiveWrite, ActiveWrites, closeQuietly, type HeldSegment } from "./active-writes.ts";
import { inactive } from "./append-rules.ts";
import { type Contention, idleWriterMs } from "./contention.ts";
import type { AppendRequest } from "./engine.ts";
import { newBlobName } from "./identifiers.ts";
import type { SegmentRecord, UploadRecord } from "./records.ts";
import type { Liveness, Quota, TransferState } from "./state-store.ts";
import { locked, offsetMismatch, quotaExceeded, unknownHandle } from "./view.ts";

const signOfLifeMs = 1_000;

interface Parts {
  readonly state: TransferState;
  readonly liveness: Liveness;
  readonly contention: Contention;
  readonly quota: Quota;
}

/** A lease taken, and where its bytes go. */
export interface Lease {
  readonly upload: UploadRecord;
  readonly segment: SegmentRecord;
  readonly held: HeldSegment | null;
  readonly now: number;
}

export class WriteLeases {
  readonly active: ActiveWrites;
  readonly #parts: Parts;
  #signOfLifeAt = Number.NEGATIVE_INFINITY;
  #asking = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.active = new ActiveWrites({ onTick: () => this.#tick() });
  }

  /** To go with a lease taken: other processes judge by it whether this one lives. Grouped with it into one commit. */
  async signOfLife(): Promise<void> {
    if (performance.now() - this.#signOfLifeAt < signOfLifeMs) return;
    this.#signOfLifeAt = performance.now();
    await this.#parts.state.heartbeat(this.#parts.liveness.processId);
  }

  /** Takes the lease, or extends the one this process still holds; ends other holders that are idle. Throws what forbids it. */
  async take(upload: UploadRecord, request: AppendRequest, abandonedFence: number | null): Promise<Lease> {
    const { state, liveness, quota, contention } = this.#parts;
    let takeOverFence = abandonedFence;
    // Each round ends another holder; more rounds than this mean that others are quicker each time.
    for (let round = 0; round < 4; round += 1) {
      const held = this.active.takeHeld(upload.handle);
      const [outcome] = await Promise.all([
        state
          .beginWrite({
            handle: upload.handle,
            generation: upload.generation,
            owner: liveness.processId,
            offset: request.resend === true ? null : request.offset,
            declareSize: request.declareSizeBytes ?? null,
            held: held === null ? null : { fence: held.fence, seq: held.seq },
            takeOverFence,
            blob: newBlobName(upload.handle),
            quota,
          })
          .catch((error: unknown) => {
            closeQuietly(held?.blob ?? null);
            throw error;
          }),
        this.signOfLife().catch(() => {}),
      ]);
      if (outcome.kind === "ok") {
        const extends_ =
          held !== null && outcome.segment.fence === held.fence && outcome.segment.seq === held.seq;
        if (!extends_) closeQuietly(held?.blob ?? null);
        return { ...outcome, held: extends_ ? held : null };
      }
      closeQuietly(held?.blob ?? null);
      switch (outcome.kind) {
        case "unknown":
          throw unknownHandle();
        case "offset":
          throw offsetMismatch(outcome.upload, request.offset);
        case "size":
          throw new TransferError("size_mismatch", "Another size was announced for this upload before.", {
            cursor: outcome.upload.offset,
          });
        case "quota":
          throw quotaExceeded(outcome.limit, outcome.used);
        case "inactive":
          throw inactive(outcome.upload, outcome.now, upload);
        case "locked":
          takeOverFence = null;
          await contention.makeWay(outcome.upload, "if_idle");
          break;
        default:
          outcome satisfies never;
      }
    }
    throw locked(upload);
  }

  /** Another process asks for the upload. */
  answerRequest(run: ActiveWrite, kind: "end" | "if_idle"): void {
    if (kind === "end" || performance.now() - run.lastByteAt() >= idleWriterMs) run.stop();
    else this.#parts.state.refuseLease(run.handle, run.fence).catch(() => {});
  }

  /** While writes run: signs of life, checkpoints, and what other processes ask for. */
  #tick(): void {
    this.signOfLife().catch(() => {});
    for (const run of this.active.all()) run.checkpoint();
    if (this.#asking) return;
    this.#asking = true;
    this.#parts.state
      .leaseRequests(this.#parts.liveness.processId)
      .then((requests) => {
        for (const { handle, fence, kind } of requests) {
          const run = this.active.get(handle);
          if (run !== undefined && run.fence === fence) this.answerRequest(run, kind);
        }
      })
      .catch(() => {})
      .finally(() => {
        this.#asking = false;
      });
  }
}
