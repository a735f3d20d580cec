/** What a handler waits for: an answer, or a time. Settled once, by whichever comes first: its end, a refusal, or the stop of the run. */
export interface Wait<T> {
  readonly name: string;
  /** Of a time: when it is over, by this process's monotonic clock. Null: an answer. */
  readonly until: number | null;
  settle(value: T): void;
  reject(error: unknown): void;
}

/** Longer than any timer of Node can be (2^31 ms): waited for in pieces. */
const longestTimerMs = 2 ** 30;

export class Waits<T> {
  readonly #waiting = new Set<Wait<T>>();
  readonly #timers = new Map<Wait<T>, NodeJS.Timeout>();

  get size(): number {
    return this.#waiting.size;
  }

  /** Resolves with what `settle` is given; a time settles itself with `timeValue`. */
  begin(name: string, time: { readonly inMs: number; readonly value: T } | null): Promise<T> {
    return new Promise((resolve, reject) => {
      const wait: Wait<T> = {
        name,
        until: time === null ? null : performance.now() + time.inMs,
        settle: (value) => {
          if (this.#forget(wait)) resolve(value);
        },
        reject: (error) => {
          if (this.#forget(wait)) reject(error);
        },
      };
      this.#waiting.add(wait);
      if (time !== null) this.#arm(wait, time.value);
    });
  }

  /** Names of the questions that are waited for. */
  questions(): string[] {
    return [...this.#waiting].filter(({ until }) => until === null).map(({ name }) => name);
  }

  /** Ms until the first time is over; null where no time is waited for. */
  nextInMs(): number | null {
    const times = [...this.#waiting].flatMap(({ until }) => (until === null ? [] : [until]));
    return times.length === 0 ? null : Math.max(0, Math.ceil(Math.min(...times) - performance.now()));
  }

  settle(name: string, value: T): void {
    for (const wait of [...this.#waiting]) if (wait.until === null && wait.name === name) wait.settle(value);
  }

  reject(error: unknown): void {
    for (const wait of [...this.#waiting]) wait.reject(error);
  }

  /** None of them ever settles. */
  abandon(): void {
    for (const wait of [...this.#waiting]) this.#forget(wait);
  }

  #forget(wait: Wait<T>): boolean {
    clearTimeout(this.#timers.get(wait));
    this.#timers.delete(wait);
    return this.#waiting.delete(wait);
  }

  #arm(wait: Wait<T>, value: T): void {
    const left = (wait.until ?? 0) - performance.now();
    if (left <= 0) {
      wait.settle(value);
      return;
    }
    // What is waited for is durable, so it need not keep a process alive.
    const timer = setTimeout(() => this.#arm(wait, value), Math.min(left, longestTimerMs)).unref();
    this.#timers.set(wait, timer);
  }
}
