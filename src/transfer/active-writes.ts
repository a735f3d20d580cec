/**
 * The writes that run in this process, one for each upload at most, and the segments it may still extend. One timer looks
 * after all of them while there are any: checkpoints, signs of life, and what other processes ask for.
 */
import type { BlobWriter } from "./blob-store.ts";
import { endPatienceMs, idleWriterMs } from "./contention.ts";

/** A write under way. */
export interface ActiveWrite {
  readonly handle: string;
  /** 0 until the lease is taken. */
  fence: number;
  /** `performance.now()` of the last byte. */
  lastByteAt(): number;
  /** Reads no further; commits what has come; its request ends with `upload_locked`. */
  stop(): void;
  /** Commits what is written so far, where it is time. Never rejects. */
  checkpoint(): void;
  /** Resolves when the lease is no longer used by it. */
  readonly finished: Promise<void>;
}

/** A segment this process wrote last and may go on with. */
export interface HeldSegment {
  readonly fence: number;
  readonly seq: number;
  readonly blob: BlobWriter | null;
  readonly since: number;
}

const tickMs = 500;
const holdMs = 8_000;
const maxHeld = 256;

export interface ActiveWritesOptions {
  /** Called on each tick while writes run. */
  readonly onTick: () => void;
}

export class ActiveWrites {
  readonly #active = new Map<string, ActiveWrite>();
  readonly #held = new Map<string, HeldSegment>();
  readonly #onTick: () => void;
  #timer: NodeJS.Timeout | null = null;

  constructor({ onTick }: ActiveWritesOptions) {
    this.#onTick = onTick;
  }

  get(handle: string): ActiveWrite | undefined {
    return this.#active.get(handle);
  }

  all(): readonly ActiveWrite[] {
    return [...this.#active.values()];
  }

  /**
   * Takes the one place for a write to this upload. A running write is ended if it is idle (`end`: in any case); false where it
   * is not. A write that does not end in 5 s is left behind: its fence will be passed over.
   */
  async claim(
    write: ActiveWrite,
    options: { end?: boolean } = {},
  ): Promise<"claimed" | "busy" | { abandonedFence: number }> {
    for (;;) {
      const current = this.#active.get(write.handle);
      if (current === undefined) {
        this.#enter(write);
        return "claimed";
      }
      if (options.end !== true && performance.now() - current.lastByteAt() < idleWriterMs) return "busy";
      if (await this.#endsInTime(current)) continue;
      if (this.#active.get(write.handle) !== current) continue;
      this.#enter(write);
      return { abandonedFence: current.fence };
    }
  }

  /** Ends a running write, whatever it does. False where it did not end within 5 s. */
  async end(handle: string): Promise<boolean> {
    const current = this.#active.get(handle);
    return current === undefined || this.#endsInTime(current);
  }

  leave(write: ActiveWrite): void {
    if (this.#active.get(write.handle) === write) this.#active.delete(write.handle);
  }

  hold(handle: string, segment: HeldSegment): void {
    this.#held.set(handle, segment);
    this.#watch();
    for (const [oldest, { blob }] of this.#held) {
      if (this.#held.size <= maxHeld) break;
      this.#held.delete(oldest);
      closeQuietly(blob);
    }
  }

  /** Takes the held segment out; the caller owns its blob from now on. */
  takeHeld(handle: string): HeldSegment | null {
    const held = this.#held.get(handle) ?? null;
    this.#held.delete(handle);
    return held;
  }

  /** Ends all writes and frees all segments. */
  async close(): Promise<void> {
    await Promise.all(this.all().map((write) => this.#endsInTime(write)));
    for (const { blob } of this.#held.values()) closeQuietly(blob);
    this.#held.clear();
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #enter(write: ActiveWrite): void {
    this.#active.set(write.handle, write);
    this.#watch();
  }

  async #endsInTime(write: ActiveWrite): Promise<boolean> {
    write.stop();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), endPatienceMs);
    });
    const ended = await Promise.race([write.finished.then(() => true as const), late]);
    clearTimeout(timer);
    return ended;
  }

  #watch(): void {
    this.#timer ??= setInterval(() => this.#tick(), tickMs);
    this.#timer.unref();
  }

  #tick(): void {
    const now = performance.now();
    for (const [handle, held] of this.#held) {
      if (now - held.since < holdMs) continue;
      this.#held.delete(handle);
      closeQuietly(held.blob);
    }
    if (this.#active.size > 0) this.#onTick();
    else if (this.#held.size === 0 && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
  }
}

/** Everything that counts was synced before; a fault of closing has nobody to tell. */
export function closeQuietly(blob: BlobWriter | null): void {
  blob?.close().catch(() => {});
}
