/**
 * Waiting for a record to change without asking again and again: woken at once by this process, within half a second by others, and
 * costing nothing while nothing changes.
 */
import type { ChangeFeed } from "./state-store.ts";

/** However busy the store, one waiter looks at most this often. */
const minLookMs = 250;

export class StatusWaiters {
  readonly #changes: ChangeFeed;
  readonly #waiting = new Map<string, Set<() => void>>();
  readonly #feed = new Set<() => void>();
  #unsubscribe: (() => void) | null = null;

  constructor(changes: ChangeFeed) {
    this.#changes = changes;
  }

  /** Something about this handle changed. */
  wake(handle: string): void {
    for (const look of [...(this.#waiting.get(handle) ?? [])]) look();
  }

  /** Looks again on changes until `changed` says so, `waitMs` is over, or the signal aborts; returns the last look. Errors of `look` end the wait. */
  wait<T>(
    handle: string,
    first: T,
    look: () => Promise<T>,
    changed: (one: T) => boolean,
    waitMs: number,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    if (changed(first)) return Promise.resolve(first);
    return new Promise((resolve, reject) => {
      let last = first;
      let looking = false;
      let again = false;
      let soon: NodeJS.Timeout | undefined;
      let lookedAt = Number.NEGATIVE_INFINITY;
      const end = (settle: () => void) => {
        clearTimeout(deadline);
        clearTimeout(soon);
        signal?.removeEventListener("abort", onTime);
        this.#waiting.get(handle)?.delete(now);
        if (this.#waiting.get(handle)?.size === 0) this.#waiting.delete(handle);
        this.#feed.delete(later);
        if (this.#feed.size === 0) this.#stopFeed();
        settle();
      };
      const onTime = () => end(() => resolve(last));
      const now = () => {
        if (looking) {
          again = true;
          return;
        }
        looking = true;
        lookedAt = performance.now();
        look().then(
          (one) => {
            looking = false;
            last = one;
            if (changed(one)) end(() => resolve(one));
            else if (again) {
              again = false;
              now();
            }
          },
          (error: unknown) => end(() => reject(error)),
        );
      };
      const later = () => {
        const wait = lookedAt + minLookMs - performance.now();
        if (wait <= 0) now();
        else
          soon ??= setTimeout(() => {
            soon = undefined;
            now();
          }, wait);
      };
      const deadline = setTimeout(onTime, waitMs);
      signal?.addEventListener("abort", onTime, { once: true });
      if (signal?.aborted === true) return onTime();
      const peers = this.#waiting.get(handle) ?? new Set();
      this.#waiting.set(handle, peers.add(now));
      this.#feed.add(later);
      this.#unsubscribe ??= this.#changes.subscribe(() => {
        for (const waiter of [...this.#feed]) waiter();
      });
      // What changed between the first look and now has been told to nobody.
      now();
    });
  }

  close(): void {
    this.#stopFeed();
  }

  #stopFeed(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = null;
  }
}
