/** Whether a transfer that has ended early can go on. */
import { TransferFailure } from "../client/index.ts";
import { isTemporary } from "../client/retry.ts";

const fullDisk: ReadonlySet<unknown> = new Set(["ENOSPC", "EDQUOT"]);

/** True: the same command gets further than this one did, once what was in the way has passed or was cleared away. */
export function canGoOn(error: unknown, signal: AbortSignal): boolean {
  if (signal.aborted) return true;
  if (!(error instanceof TransferFailure))
    return error instanceof Error && "code" in error && fullDisk.has(error.code);
  // `offset_mismatch`: somebody else was writing as well.
  return isTemporary(error) || error.retryAfterMs !== null || error.code === "offset_mismatch";
}
