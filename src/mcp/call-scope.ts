/**
 * The calls that run at this moment, so that an ending server can cut their waits short and let what they do come to its end.
 */
export class CallScope {
  readonly #running = new Set<Promise<unknown>>();
  readonly #closing = new AbortController();

  /** Runs a call. */
  run<T>(call: () => Promise<T>): Promise<T> {
    const running = call().finally(() => this.#running.delete(running));
    this.#running.add(running);
    return running;
  }

  /** Aborts when the caller goes away or the scope closes. Only made for calls that wait: most never look at it. */
  signal(caller: AbortSignal): AbortSignal {
    return AbortSignal.any([caller, this.#closing.signal]);
  }

  /** Ends waits, and resolves when the last call has ended. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#running);
    // An answer leaves in the turn after its call has ended.
    await new Promise((resolve) => setImmediate(resolve));
  }
}
