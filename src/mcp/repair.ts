/**
 * What the envelope of a failed tool call says beyond the error itself: hints that name tools instead of HTTP header fields, and the
 * call that repairs it. The engine, which serves all doors, names tools only where no other way leads on.
 */
import { type ErrorCode, type Repair, TransferError, type TransferErrorOptions } from "../errors.ts";
import { isHandle } from "../transfer/identifiers.ts";

/** The call that failed: its arguments as far as they are usable. */
interface Call {
  readonly tool: string;
  readonly handle: string | null;
  readonly offset: number | null;
}

/** `given` are the arguments as they came, checked or not. */
export function withRepair(error: TransferError, tool: string, given: unknown): TransferError {
  const more = additions[error.code]?.(error, callOf(tool, given));
  if (more === undefined) return error;
  // What is said here is meant for a model and goes before words meant for every door.
  return new TransferError(error.code, error.message, { ...error.options, ...more, cause: error });
}

const additions: Partial<
  Record<ErrorCode, (error: TransferError, call: Call) => TransferErrorOptions | undefined>
> = {
  unknown_handle: () => ({ repair: { tool: "file_list", arguments: {} } }),

  unknown_task: () => ({
    recoveryHint: "Call durable_task_list to see your tasks, or start the task again.",
    repair: { tool: "durable_task_list", arguments: {} },
  }),

  invalid_base64: (_error, { handle, offset }) =>
    handle === null || offset === null ? {} : { repair: write(handle, offset) },

  chunk_too_large: (_error, { handle, offset }) =>
    handle === null || offset === null ? {} : { repair: write(handle, offset) },

  checksum_mismatch: ({ status, options: { cursor } }, { tool, handle }) => {
    if (status !== 400 || tool !== "upload_write" || handle === null || cursor === undefined)
      return undefined;
    return {
      recoveryHint: `Nothing of the chunk was stored. Encode its bytes again, take the sha256 of exactly these bytes, and send them at offset ${cursor}.`,
      repair: write(handle, cursor),
    };
  },

  size_mismatch: ({ retryable, options: { cursor } }, { handle }) => {
    if (!retryable || handle === null || cursor === undefined) return undefined;
    return {
      recoveryHint: `Send bytes from offset ${cursor} up to the size announced and no more, and leave out final; or call upload_create with the right size.`,
      repair: write(handle, cursor),
    };
  },

  not_active: ({ options: { retryAfterSeconds } }, { handle }) =>
    retryAfterSeconds === undefined || handle === null
      ? undefined
      : {
          recoveryHint:
            "The digest is being checked: call upload_status with waitMs 40000 and follow its nextStep.",
          repair: { tool: "upload_status", arguments: { handle, waitMs: 40_000 } },
        },

  upload_locked: (error, call) => later(error, call),
  rate_limited: (error, call) => later(error, call),
  storage_unavailable: (error, call) => later(error, call),

  storage_full: (_error, { tool, handle }) =>
    tool === "upload_write" && handle !== null
      ? {
          recoveryHint:
            "Wait until space is free (file_delete frees some), call upload_status, and go on from the offset that it tells.",
          repair: { tool: "upload_status", arguments: { handle } },
        }
      : { recoveryHint: "Wait until space is free (file_delete frees some), then make the same call again." },
};

/** A write may have taken effect in part, so its offset is asked for; everything else is simply repeated. */
function later(error: TransferError, { tool, handle }: Call): TransferErrorOptions {
  const seconds = error.options.retryAfterSeconds ?? 1;
  const wait = `Wait ${seconds} ${seconds === 1 ? "second" : "seconds"}`;
  return tool === "upload_write" && handle !== null
    ? {
        recoveryHint: `${wait}, call upload_status, and go on from the offset that it tells.`,
        repair: { tool: "upload_status", arguments: { handle } },
      }
    : { recoveryHint: `${wait}, then make the same call again.` };
}

function write(handle: string, offset: number): Repair {
  return { tool: "upload_write", arguments: { handle, offset } };
}

function callOf(tool: string, given: unknown): Call {
  const { handle, offset } = (typeof given === "object" && given !== null ? given : {}) as {
    handle?: unknown;
    offset?: unknown;
  };
  return {
    tool,
    handle: typeof handle === "string" && isHandle(handle) ? handle : null,
    offset: typeof offset === "number" && Number.isSafeInteger(offset) && offset >= 0 ? offset : null,
  };
}
