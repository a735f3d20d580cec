/** Progress as it comes from a handler, brought to the store no more often than anybody could look: the newest is sure to get there. */
import type { TaskProgress } from "./engine.ts";
import type { Lease, TaskState } from "./state-store.ts";

const gapMs = 250;
const maxMessageLength = 1_000;

export class ProgressWriter {
  readonly #state: Pick<TaskState, "setProgress">;
  readonly #lease: Lease;
  readonly #onWritten: () => void;
  #fraction: number | null;
  #newest: TaskProgress | null = null;
  #waiting: TaskProgress | null = null;
  #timer: NodeJS.Timeout | null = null;
  #writing: Promise<void> | null = null;
  #wroteAt = Number.NEGATIVE_INFINITY;

  constructor(
    state: Pick<TaskState, "setProgress">,
    lease: Lease,
    before: TaskProgress | null,
    onWritten: () => void,
  ) {
    this.#state = state;
    this.#lease = lease;
    this.#fraction = before?.fraction ?? null;
    this.#onWritten = onWritten;
  }

  report(message: string, fraction: number | undefined): void {
    if (fraction !== undefined && Number.isFinite(fraction)) {
      this.#fraction = Math.max(this.#fraction ?? 0, Math.min(1, fraction));
    }
    this.#newest = { message: String(message).slice(0, maxMessageLength), fraction: this.#fraction };
    this.#waiting = this.#newest;
    if (this.#timer !== null || this.#writing !== null) return;
    const wait = this.#wroteAt + gapMs - performance.now();
    if (wait <= 0) this.#begin();
    else {
      this.#timer = setTimeout(() => {
        this.#timer = null;
        this.#begin();
      }, wait).unref();
    }
  }

  /** The last report, whether it is written or not; null before the first. For what is recorded together with it. */
  get newest(): TaskProgress | null {
    return this.#newest;
  }

  /** It was recorded together with something else. */
  noteWritten(progress: TaskProgress | null): void {
    if (this.#waiting === progress) this.#waiting = null;
  }

  /** Writes what waits, now. Never rejects: what is not written was only progress. */
  async flush(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    await this.#writing;
    if (this.#waiting !== null) await this.#write();
  }

  #begin(): void {
    this.#writing = this.#write().finally(() => {
      this.#writing = null;
      if (this.#waiting !== null) this.report(this.#waiting.message, undefined);
    });
  }

  async #write(): Promise<void> {
    const progress = this.#waiting;
    if (progress === null) return;
    this.#waiting = null;
    this.#wroteAt = performance.now();
    try {
      if (await this.#state.setProgress(this.#lease, progress.message, progress.fraction)) this.#onWritten();
    } catch {
      // The store is busy, or the lease is lost; the next report tries again.
    }
  }
}
