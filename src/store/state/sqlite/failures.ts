/** What SQLite and the file system throw, sorted by what a caller can do about it. */
import type { Failure } from "../protocol.ts";

/** Primary result codes (https://www.sqlite.org/rescode.html); extended codes carry them in the low byte. */
const busyCodes = new Set([
  5 /* BUSY */, 6 /* LOCKED */, 15 /* PROTOCOL: lost a race for the locks of the WAL */,
]);
const fullCode = 13;
/** The index of the log could not grow, which needs space like the log itself. */
const indexFullCode = 4874;
const mediumCodes = new Set([
  3 /* PERM */, 7 /* NOMEM */, 8 /* READONLY */, 9 /* INTERRUPT */, 10 /* IOERR */, 11 /* CORRUPT */,
  14 /* CANTOPEN */, 23 /* AUTH */, 26 /* NOTADB */,
]);
const fullErrnos = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

function extendedCode(error: unknown): number | null {
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number") return null;
  return error.errcode;
}

function primaryCode(error: unknown): number | null {
  const code = extendedCode(error);
  return code === null ? null : code & 0xff;
}

function errno(error: unknown): string | null {
  const isSystemError = error instanceof Error && "syscall" in error && "code" in error;
  return isSystemError && typeof error.code === "string" ? error.code : null;
}

/** Another connection is in the way for now: worth trying again. */
export const isBusy = (error: unknown): boolean => {
  const code = primaryCode(error);
  return code !== null && busyCodes.has(code);
};

/** No space is left. */
export const isFull = (error: unknown): boolean => {
  const systemCode = errno(error);
  if (systemCode !== null) return fullErrnos.has(systemCode);
  return primaryCode(error) === fullCode || extendedCode(error) === indexFullCode;
};

/** Not there, as opposed to there and out of reach. */
export const isCannotOpen = (error: unknown): boolean => primaryCode(error) === 14;

/** The medium failed, not the operation: whatever shares its transaction has failed with it. */
export const isStorageFault = (error: unknown): boolean => {
  const code = primaryCode(error);
  return code !== null && (code === fullCode || busyCodes.has(code) || mediumCodes.has(code));
};

const described = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error);

export const busyFailure = (): Failure => ({
  code: "storage_unavailable",
  message: "The state store is busy: another process has been holding it.",
  retryable: true,
  cause: null,
});

/** A fault with words of its own, that trying again does not mend. */
export class StateRefused extends Error {
  override readonly name = "StateRefused";
}

export function toFailure(error: unknown): Failure {
  const cause = described(error);
  if (error instanceof StateRefused) {
    return { code: "storage_unavailable", message: error.message, retryable: false, cause: null };
  }
  const code = primaryCode(error);
  const systemCode = errno(error);
  if (isFull(error)) {
    return { code: "storage_full", message: "The disk of the state store is full.", retryable: true, cause };
  }
  if (isBusy(error)) return { ...busyFailure(), cause };
  if ((code !== null && mediumCodes.has(code)) || systemCode !== null) {
    return {
      code: "storage_unavailable",
      message: "The state store cannot be reached.",
      retryable: true,
      cause,
    };
  }
  return {
    code: "internal_error",
    message: "An operation of the state store failed.",
    retryable: false,
    cause,
  };
}
