/** What goes wrong on the way, in one class: the server's own errors by their code, and the few that are the client's. */
import type { ErrorCode } from "../errors.ts";

/**
 * `network`: no answer came, again and again. `source_changed`: the file changed while it was sent, or a stream cannot go back to where the
 * server is. `not_longshore`: the URL leads to something else. `unknown`: an answer without a code.
 *
 * @example
 * const worthWaiting: readonly FailureCode[] = ["network", "storage_full"];
 */
export type FailureCode = ErrorCode | "network" | "source_changed" | "not_longshore" | "unknown";

/**
 * An upload or download that cannot go on. What has arrived is kept: the same call with the same URL goes on from there, as far as the
 * reason allows.
 *
 * @example
 * try {
 *   await upload(url, file);
 * } catch (error) {
 *   if (error instanceof TransferFailure && error.code === "transfer_expired") await askForANewUrl();
 * }
 */
export class TransferFailure extends Error {
  override readonly name = "TransferFailure";
  readonly code: FailureCode;
  /** HTTP status; null where there was no answer. */
  readonly status: number | null;
  /** Following `recoveryHint` succeeds. */
  readonly retryable: boolean;
  readonly recoveryHint: string | null;
  /** The next byte that the server expects, where it said so. */
  readonly cursor: number | null;
  /** How long the server wants to be left alone; null where it did not say. */
  readonly retryAfterMs: number | null;

  constructor(code: FailureCode, message: string, more: FailureDetails = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.code = code;
    this.status = more.status ?? null;
    this.retryable = more.retryable ?? false;
    this.recoveryHint = more.recoveryHint ?? null;
    this.cursor = more.cursor ?? null;
    this.retryAfterMs = more.retryAfterMs ?? null;
  }
}

interface FailureDetails {
  readonly status?: number;
  readonly retryable?: boolean;
  readonly recoveryHint?: string | null;
  readonly cursor?: number | null;
  readonly retryAfterMs?: number | null;
  readonly cause?: unknown;
}

/** HEAD has no body, so its status has to say it all. */
const codeOfStatus: Readonly<Record<number, ErrorCode>> = {
  401: "unauthorized",
  403: "forbidden",
  404: "unknown_handle",
  409: "offset_mismatch",
  410: "transfer_expired",
  422: "checksum_mismatch",
  423: "upload_locked",
  503: "storage_unavailable",
  507: "storage_full",
};

/** Reads the problem document (RFC 9457) of an answer that is no success. */
export async function failureOf(response: Response): Promise<TransferFailure> {
  const { status, headers } = response;
  const problem = await problemIn(response);
  const code =
    typeof problem.code === "string" ? (problem.code as FailureCode) : (codeOfStatus[status] ?? "unknown");
  const message = typeof problem.detail === "string" ? problem.detail : `The server answered ${status}.`;
  return new TransferFailure(code, message, {
    status,
    retryable: problem.retryable === true,
    recoveryHint: typeof problem.recoveryHint === "string" ? problem.recoveryHint : null,
    cursor: wholeNumber(headers.get("upload-offset")),
    retryAfterMs: secondsIn(headers.get("retry-after")),
  });
}

async function problemIn(response: Response): Promise<{ readonly [member: string]: unknown }> {
  try {
    const problem: unknown = await response.json();
    return typeof problem === "object" && problem !== null ? { ...problem } : {};
  } catch {
    return {};
  }
}

/** A header field that holds a number of bytes; null where it is absent or none. */
export function wholeNumber(field: string | null): number | null {
  return field !== null && /^\d{1,16}$/.test(field) ? Number(field) : null;
}

function secondsIn(field: string | null): number | null {
  const seconds = wholeNumber(field);
  return seconds === null ? null : seconds * 1_000;
}
