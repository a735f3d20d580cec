/**
 * The one catalogue of errors and the one error class, with the pure renderers that every door uses.
 *
 * Nothing else in the house writes a status number or an error message for a caller. `docs/errors.md` describes the
 * same catalogue and is checked against it in both directions.
 */

interface CatalogueEntry {
  /** HTTP status code (RFC 9110 section 15; 460 is of the tus checksum extension). */
  readonly status: number;
  /** Short fixed title, `title` of RFC 9457. */
  readonly title: string;
  /** Following the recovery hint literally succeeds. */
  readonly retryable: boolean;
  /** What to do when the place that raised the error has nothing better to say. */
  readonly recoveryHint: string;
}

const entry = (status: number, title: string, retryable: boolean, recoveryHint: string): CatalogueEntry =>
  Object.freeze({ status, title, retryable, recoveryHint });

export const errorCatalogue = {
  invalid_param: entry(400, "Invalid parameter", true, "Correct the named parameter and call again."),
  invalid_base64: entry(
    400,
    "Invalid base64",
    true,
    "Encode the bytes again as standard base64 with padding and no line breaks, and send them at the same offset.",
  ),
  client_path_not_reachable: entry(
    400,
    "A path on the caller's machine cannot be read here",
    true,
    "Call upload_create, upload the file with the command that it returns, and use the handle.",
  ),
  unauthorized: entry(
    401,
    "Unauthorized",
    false,
    "Send a valid key or access token as 'Authorization: Bearer …'.",
  ),
  forbidden: entry(
    403,
    "Forbidden",
    false,
    "Use a key with the scope that this needs, or an allowed Host and Origin.",
  ),
  unknown_handle: entry(
    404,
    "Unknown handle",
    false,
    "Call file_list to see your handles, or upload_create to start a new upload.",
  ),
  unknown_task: entry(404, "Unknown task", false, "Start the task again."),
  transfer_expired: entry(410, "Expired", false, "Start a new upload with upload_create."),
  offset_mismatch: entry(409, "Offset mismatch", true, "Send the bytes from the offset in partial.cursor."),
  not_active: entry(409, "Not possible in this state", false, "Call upload_status to see the state."),
  idempotency_conflict: entry(
    409,
    "Idempotency key used with other arguments",
    true,
    "Use a new idempotencyKey, or repeat the first arguments exactly.",
  ),
  size_mismatch: entry(
    413,
    "More or fewer bytes than the size announced",
    true,
    "Send exactly the bytes that are missing, or create a new upload with the right size.",
  ),
  chunk_too_large: entry(413, "Chunk too large", true, "Send smaller chunks."),
  inline_too_large: entry(
    413,
    "Too large for inline chunks",
    true,
    "Upload over HTTP with the command given.",
  ),
  file_too_large: entry(
    413,
    "File too large",
    false,
    "Send a smaller file, or ask the operator to raise LONGSHORE_MAX_FILE_BYTES.",
  ),
  quota_exceeded: entry(
    413,
    "Quota exceeded",
    false,
    "Delete files that are no longer needed with file_delete, then try again.",
  ),
  upload_locked: entry(
    423,
    "Another request is writing",
    true,
    "Wait as long as Retry-After says, ask for the offset, and go on from there.",
  ),
  checksum_mismatch: entry(
    422,
    "Checksum mismatch",
    true,
    "Send the same bytes again from the offset in partial.cursor.",
  ),
  rate_limited: entry(
    429,
    "Too many requests",
    true,
    "Wait as long as Retry-After says, then repeat the request.",
  ),
  storage_full: entry(
    507,
    "Storage full",
    true,
    "Wait until space is free, ask for the offset, and go on from there.",
  ),
  storage_unavailable: entry(
    503,
    "Storage unavailable",
    true,
    "Wait as long as Retry-After says, then repeat the request.",
  ),
  task_not_waiting: entry(
    409,
    "The task is not waiting for an answer",
    false,
    "Call durable_task_get to see the state of the task.",
  ),
  task_failed: entry(
    422,
    "The task failed",
    false,
    "Read the message: it is the task's own. Start the task again once its cause is mended.",
  ),
  task_interrupted: entry(
    409,
    "The task was interrupted and may not run again by itself",
    false,
    "Start the task again.",
  ),
  unsupported_version: entry(412, "Unsupported protocol version", true, "Send 'Tus-Resumable: 1.0.0'."),
  unsupported_media_type: entry(
    415,
    "Unsupported media type",
    true,
    "Send 'Content-Type: application/offset+octet-stream'.",
  ),
  unsupported_checksum: entry(
    400,
    "Unsupported checksum algorithm",
    true,
    "Use one of the algorithms in Tus-Checksum-Algorithm.",
  ),
  final_upload: entry(403, "A final upload takes no bytes", false, "Send the bytes to its partial uploads."),
  method_not_allowed: entry(405, "Method not allowed", true, "Use one of the methods in Allow."),
  precondition_failed: entry(
    412,
    "Precondition failed",
    false,
    "Ask without the condition, or with the ETag that HEAD tells.",
  ),
  range_not_satisfiable: entry(
    416,
    "Range not satisfiable",
    true,
    "Ask for a range within the size in Content-Range.",
  ),
  content_length_required: entry(411, "Content-Length required", true, "Send a Content-Length."),
  headers_too_large: entry(431, "Header fields too large", true, "Send shorter header fields."),
  url_not_allowed: entry(
    403,
    "URL not allowed",
    false,
    "Use a public URL, or ask the operator to allow the host.",
  ),
  internal_error: entry(
    500,
    "Internal error",
    false,
    "Try again later; tell the operator the request id if it stays.",
  ),
} as const satisfies Record<string, CatalogueEntry>;

/**
 * Every code that an error can have.
 *
 * @example
 * const code: ErrorCode = "unknown_handle";
 */
export type ErrorCode = keyof typeof errorCatalogue;

/** A tool call that repairs the error in one step. */
export interface Repair {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/**
 * What an error says besides its code and message.
 *
 * @example
 * const options: TransferErrorOptions = { recoveryHint: "Pass the handle of a CSV file.", param: "handle" };
 */
export interface TransferErrorOptions {
  /** Replaces the catalogue's recovery hint by one for this place. */
  readonly recoveryHint?: string;
  /** Replaces the catalogue's word where this instance cannot be repaired (or can be). */
  readonly retryable?: boolean;
  /** Name of the parameter at fault, with `invalid_param` and its kin. */
  readonly param?: string;
  /** True next offset in bytes, where it is known. */
  readonly cursor?: number;
  readonly repair?: Repair;
  /** Seconds for `Retry-After`. */
  readonly retryAfterSeconds?: number;
  /** Replaces the catalogue's HTTP status where one code has several (checksum_mismatch). */
  readonly status?: 400 | 409 | 422 | 460;
  /** Methods for `Allow` (method_not_allowed). */
  readonly allow?: readonly string[];
  /** Total size in bytes for `Content-Range` (range_not_satisfiable). */
  readonly sizeBytes?: number;
  /** Further members of the error object, such as the upload URLs of inline_too_large. */
  readonly extra?: Readonly<Record<string, unknown>>;
  /** The upload that the error is about, for answers on its own URL: told in header fields only. */
  readonly about?: { readonly handle: string; readonly status: string };
  /** Replaces `type` and `title` of the problem document where a specification has defined them; `members` are its own ones. */
  readonly problem?: {
    readonly type: string;
    readonly title: string;
    readonly members?: Readonly<Record<string, unknown>>;
  };
  /** Kept for the log, never shown. */
  readonly cause?: unknown;
}

/**
 * A fault the caller is told of, by a code of the catalogue.
 *
 * @example
 * throw new TransferError("invalid_param", "The file is no CSV.", { param: "handle" });
 */
export class TransferError extends Error {
  override readonly name = "TransferError";
  readonly code: ErrorCode;
  readonly status: number;
  readonly retryable: boolean;
  readonly recoveryHint: string;
  readonly options: TransferErrorOptions;

  constructor(code: ErrorCode, message: string, options: TransferErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    const known = errorCatalogue[code];
    this.code = code;
    this.status = options.status ?? known.status;
    this.retryable = options.retryable ?? known.retryable;
    this.recoveryHint = options.recoveryHint ?? known.recoveryHint;
    this.options = options;
  }

  /** The same error with more said about it; what is already said stays. */
  with(more: TransferErrorOptions): TransferError {
    return new TransferError(this.code, this.message, {
      ...more,
      ...this.options,
      cause: this.options.cause ?? this,
    });
  }
}

/** Anything thrown, as an error of the catalogue: what is not one of ours becomes `internal_error` and says nothing of the inside. */
export function asTransferError(thrown: unknown): TransferError {
  if (thrown instanceof TransferError) return thrown;
  return new TransferError("internal_error", "Something went wrong inside the server.", { cause: thrown });
}

/**
 * The `error` object of the envelope: what section 5 of the documentation of errors shows.
 *
 * @example
 * const { error }: { error?: ErrorBody } = result.structuredContent;
 */
export interface ErrorBody {
  readonly code: ErrorCode;
  readonly message: string;
  readonly retryable: boolean;
  readonly recoveryHint: string;
  readonly param?: string;
  readonly partial?: { readonly cursor: number };
  readonly repair?: Repair;
  readonly retryAfterSeconds?: number;
  readonly requestId?: string;
  readonly [extra: string]: unknown;
}

export function errorBody(error: TransferError, requestId?: string): ErrorBody {
  const { param, cursor, repair, retryAfterSeconds, extra } = error.options;
  return {
    code: error.code,
    message: error.message,
    retryable: error.retryable,
    recoveryHint: error.recoveryHint,
    ...(param !== undefined && { param }),
    ...(cursor !== undefined && { partial: { cursor } }),
    ...(repair !== undefined && { repair }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(error.code === "internal_error" && requestId !== undefined && { requestId }),
    ...extra,
  };
}

/** A failed tool call's content (the MCP envelope). */
export function toEnvelope(error: TransferError, requestId?: string): { status: "failed"; error: ErrorBody } {
  return { status: "failed", error: errorBody(error, requestId) };
}

/** `application/problem+json` (RFC 9457 section 3) with our members at top level. */
export function toProblem(error: TransferError, requestId?: string): Record<string, unknown> {
  const { message, ...rest } = errorBody(error, requestId);
  const { problem } = error.options;
  return {
    type: problem?.type ?? `urn:longshore:error:${error.code}`,
    title: problem?.title ?? errorCatalogue[error.code].title,
    status: error.status,
    detail: message,
    ...rest,
    ...problem?.members,
  };
}

/** Response header fields that go with the error on every HTTP door. */
export function toErrorHeaders(error: TransferError): Record<string, string> {
  const { cursor, retryAfterSeconds, allow, sizeBytes, about } = error.options;
  const hidesUpload = error.status === 403 || error.status === 404 || error.status === 410;
  return {
    ...(cursor !== undefined && !hidesUpload && { "Upload-Offset": String(cursor) }),
    ...(retryAfterSeconds !== undefined && { "Retry-After": String(retryAfterSeconds) }),
    ...(allow !== undefined && { Allow: allow.join(", ") }),
    ...(error.code === "range_not_satisfiable" &&
      sizeBytes !== undefined && { "Content-Range": `bytes */${sizeBytes}` }),
    ...(error.code === "unsupported_version" && { "Tus-Version": "1.0.0" }),
    ...(about !== undefined && { "Longshore-Handle": about.handle, "Longshore-Status": about.status }),
  };
}
