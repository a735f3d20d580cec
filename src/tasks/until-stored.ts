/** Calls to a store that is busy or full for a while: made again until they succeed, with longer and longer pauses. */
import { setTimeout as sleep } from "node:timers/promises";
import { TransferError } from "../errors.ts";

const firstPauseMs = 200;
const longestPauseMs = 3_000;

/** Throws what cannot be mended by waiting, and what is met last once `goOn` says no. */
export async function untilStored<T>(call: () => Promise<T>, goOn: () => boolean): Promise<T> {
  for (let pause = firstPauseMs; ; pause = Math.min(pause * 2, longestPauseMs)) {
    try {
      return await call();
    } catch (error) {
      const passes =
        error instanceof TransferError &&
        (error.code === "storage_unavailable" || error.code === "storage_full") &&
        error.retryable;
      if (!passes || !goOn()) throw error;
    }
    await sleep(pause * (0.5 + Math.random() / 2));
  }
}
