/** Requests that are tried again: what is worth another try, and how long to wait before it. */
import { failureOf, TransferFailure } from "./transfer-failure.ts";

/**
 * How patient a transfer is.
 *
 * @example
 * const options: RetryOptions = { signal: AbortSignal.timeout(3_600_000), attempts: 30 };
 */
export interface RetryOptions {
  /** Ends the transfer at once; what has arrived is kept. */
  readonly signal?: AbortSignal;
  /** Tries in a row without a byte of progress before it is given up. Default 10: about two minutes. */
  readonly attempts?: number;
  /** Told before each pause between two tries. */
  readonly onRetry?: (failure: TransferFailure, pauseMs: number) => void;
  /** Default: `fetch` of the platform. */
  readonly fetch?: typeof fetch;
}

const defaultAttempts = 10;
const firstPauseMs = 500;
const longestPauseMs = 20_000;

const temporary: ReadonlySet<number> = new Set([408, 423, 425, 429, 500, 502, 503, 504, 507]);

/** One transfer's patience; any progress gives it all back. */
export class Patience {
  readonly #attempts: number;
  readonly #signal: AbortSignal | undefined;
  readonly #onRetry: RetryOptions["onRetry"];
  #failed = 0;

  constructor({ attempts = defaultAttempts, signal, onRetry }: RetryOptions) {
    this.#attempts = attempts;
    this.#signal = signal;
    this.#onRetry = onRetry;
  }

  progressed(): void {
    this.#failed = 0;
  }

  /** Waits before the next try; throws the failure where there is to be none. */
  async afterFailure(failure: TransferFailure): Promise<void> {
    this.#failed += 1;
    if (this.#failed >= this.#attempts) throw failure;
    const longest = Math.min(longestPauseMs, firstPauseMs * 2 ** (this.#failed - 1));
    // Clients that lost one server together must not all come back in the same moment.
    const pauseMs = failure.retryAfterMs ?? Math.round(longest * (0.5 + Math.random() / 2));
    this.#onRetry?.(failure, pauseMs);
    await this.pause(pauseMs);
  }

  async pause(ms: number): Promise<void> {
    const signal = this.#signal;
    signal?.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const onAbort = (): void => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      }, ms);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }
}

/** @throws TransferFailure `network` where no answer came; the reason of the signal where that aborted. */
export async function send(
  url: string,
  init: RequestInit,
  { fetch: send = fetch, signal }: RetryOptions,
): Promise<Response> {
  try {
    return await send(url, {
      ...init,
      ...(signal !== undefined && { signal }),
      redirect: "error",
      cache: "no-store",
    });
  } catch (error) {
    signal?.throwIfAborted();
    throw lostConnection(error);
  }
}

export function lostConnection(cause: unknown): TransferFailure {
  return new TransferFailure("network", "The connection to the server failed.", {
    retryable: true,
    recoveryHint: "Try again with the same URL: nothing that has arrived is lost.",
    cause,
  });
}

/** Worth another try without anybody's help. */
export function isTemporary(failure: TransferFailure): boolean {
  return failure.status === null ? failure.code === "network" : temporary.has(failure.status);
}

/** Sends until there is an answer that a further try would not better. */
export async function sendPatiently(
  url: string,
  init: RequestInit,
  options: RetryOptions,
  patience: Patience,
): Promise<Response> {
  for (;;) {
    let failure: TransferFailure;
    try {
      const response = await send(url, init, options);
      if (response.ok) return response;
      failure = await failureOf(response);
      // All bytes are there and are being read through: however long that takes, it is no failure.
      if (response.status === 423 && response.headers.get("longshore-status") === "verifying") {
        await patience.pause(failure.retryAfterMs ?? 1_000);
        continue;
      }
    } catch (error) {
      if (!(error instanceof TransferFailure)) throw error;
      failure = error;
    }
    if (!isTemporary(failure)) throw failure;
    await patience.afterFailure(failure);
  }
}
