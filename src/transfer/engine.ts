/**
 * The transfer engine as the doors see it: all rules about offsets, sizes, digests, states, ownership, quotas and expiry
 * are behind this interface, once. Every method throws `TransferError` and nothing else for what a caller can cause.
 *
 * Who may do what: methods that take a `principal` act on that principal's own records (another's is `unknown_handle`); methods that take a
 * `ticket` act on the one handle the ticket is for.
 */
import type { Readable } from "node:stream";
import type { ConcatRole, TransferStatus } from "./records.ts";

/**
 * An upload, and the file that it becomes.
 *
 * @example
 * const transfer: Transfer = await store.transfers.status("local", handle);
 */
export interface Transfer {
  readonly handle: string;
  readonly principal: string;
  readonly status: TransferStatus;
  readonly filename: string | null;
  readonly contentType: string | null;
  /** `Upload-Metadata` byte for byte; null where none came. */
  readonly metadata: string | null;
  readonly sizeBytes: number | null;
  /** Acknowledged bytes: the next byte expected. */
  readonly offset: number;
  readonly declaredSha256: string | null;
  /** Lower-case hex; set once complete. */
  readonly sha256: string | null;
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
  readonly completedAt: Date | null;
  readonly concat: ConcatRole;
  /** `Upload-Concat` of a final upload byte for byte; null for all others. */
  readonly uploadConcat: string | null;
  /** While bytes flow: bytes per second, else null. */
  readonly bytesPerSecond: number | null;
}

export interface CreateRequest {
  readonly filename: string | null;
  readonly contentType: string | null;
  readonly metadata: string | null;
  /** Null: deferred. */
  readonly sizeBytes: number | null;
  /** Lower-case hex. */
  readonly sha256: string | null;
  readonly idempotencyKey: string | null;
  /** `partial`: to become part of a final upload (see `ConcatRole`). */
  readonly concat?: "whole" | "partial";
}

/** What a final upload is made of, and what is said of it. */
export interface ConcatenateRequest
  extends Pick<CreateRequest, "filename" | "contentType" | "metadata" | "sha256"> {
  /** Upload tickets of finished partial uploads, in the order of the bytes. */
  readonly tickets: readonly string[];
  /** `Upload-Concat` byte for byte as it was received. */
  readonly uploadConcat: string;
}

export interface Created {
  readonly transfer: Transfer;
  /** Upload ticket for the URL; shown this once. */
  readonly ticket: string;
  /** False where an idempotency key found the earlier one. */
  readonly created: boolean;
}

/** A body on its way in. The engine reads it to its end, or destroys nothing but stops reading when it gives up. */
export interface Body {
  readonly stream: Readable;
  /** Announced length in bytes (Content-Length); null for chunked bodies. */
  readonly lengthBytes: number | null;
  /** Nobody else looks at the pieces of the stream: the engine may give their memory back as soon as they are written. */
  readonly disposable?: boolean;
}

export interface AppendRequest {
  /** Next byte the caller brings; it must be the offset (else `offset_mismatch`). Null: `resend`. */
  readonly offset: number;
  readonly body: Body;
  /**
   * The body starts at 0 although bytes may be here already: its first bytes must equal the stored ones (else
   * `checksum_mismatch` with status 409 and nothing changed), the rest is appended. `offset` must be 0.
   */
  readonly resend?: boolean;
  /** The total, where this request tells it (Upload-Length on a deferred upload, TOTAL of Content-Range). */
  readonly declareSizeBytes?: number | null;
  /** The end of this body is the end of the file: an unknown size becomes what is here then. */
  readonly final?: boolean;
  /** Digests of this body, checked before anything of it counts; a wrong one → `checksum_mismatch` with `failStatus`, the cursor stays. */
  readonly checksums?: readonly Checksum[];
  /** Comes behind the body (in a trailer); checked in the same way. */
  readonly lateChecksum?: LateChecksum | null;
  /** Lower-case hex sha256 of the whole file, where this request tells it; another one than before is `invalid_param`. */
  readonly declareSha256?: string | null;
  /** Called with the offset whenever bytes of the running request have been committed. */
  readonly onCommitted?: (offset: number) => void;
  /** Called from the moment the request is known to be good and bytes are wanted (100 Continue, say). */
  readonly onAccepted?: () => void;
}

export type ChecksumAlgorithm = "sha256" | "sha512" | "sha1" | "md5" | "crc32c";

/** Digest that the body of a request must have. `hex` lower case; crc32c with the highest byte first. */
export interface Checksum {
  readonly algorithm: ChecksumAlgorithm;
  readonly hex: string;
  readonly failStatus: 400 | 460;
}

export interface LateChecksum {
  /** Computed along with the body, since which one is meant is not known before its end. */
  readonly algorithms: readonly ChecksumAlgorithm[];
  /** Asked once the body has ended; may throw TransferError. */
  readonly expected: () => Checksum;
}

export interface Appended {
  /** After the write. `complete` only with the digest known; `verifying` where it was not in time. A wrong whole-file digest throws `checksum_mismatch` (422). */
  readonly transfer: Transfer;
  /** Bytes of this request that were stored. */
  readonly receivedBytes: number;
}

export interface PrefixDigest {
  /** Bytes hashed: the offset, or less where the time was too short. */
  readonly bytes: number;
  readonly sha256: string;
}

export interface ListPage {
  readonly transfers: readonly Transfer[];
  /** Opaque; null at the end. */
  readonly nextCursor: string | null;
}

/** A complete file being read. */
export interface OpenFile {
  readonly transfer: Transfer & { readonly sizeBytes: number; readonly sha256: string };
  /** Bytes from `start` to `end` (exclusive). Destroying it frees what it holds. Errors surface as stream errors. */
  stream(start: number, end: number): Readable;
  /** The same in one piece, for a short run: all of it is in memory at once. */
  bytes(start: number, end: number): Promise<Buffer>;
  /**
   * Path on this machine of one file with exactly these bytes, good for an hour at least; waits for the rewriting of a file in many
   * segments. Null where the store has none.
   */
  path(): Promise<string | null>;
}

export interface TransferLimits {
  readonly maxFileBytes: number;
  readonly inlineChunkBytes: number;
  readonly inlineFileBytes: number;
  readonly uploadTtlMs: number;
  /** Null: never. */
  readonly fileTtlMs: number | null;
  readonly downloadTtlMs: number;
}

export interface SweepReport {
  readonly markedExpired: number;
  readonly removedUploads: number;
  readonly removedBlobs: number;
  readonly adoptedOrphans: number;
  /** What was removed or deleted and still has its bytes on the disk, and when the first of them may go; null: there are none. */
  readonly waitingBlobs: number;
  readonly waitsUntil: Date | null;
}

/** What `verify` found wrong with a stored file. */
export interface StoredFault {
  readonly handle: string;
  readonly filename: string | null;
  /** `missing`: bytes that are recorded are not there; `size`: the record disagrees with itself; `digest`: other bytes than were received. */
  readonly fault: "missing" | "size" | "digest";
  readonly detail: string;
}

export interface VerifyReport {
  readonly checkedFiles: number;
  readonly checkedBytes: number;
  readonly faults: number;
}

/**
 * Uploads and files of a store, for programs that work on them without a tool or a URL.
 *
 * @example
 * const engine: TransferEngine = store.transfers;
 * const { transfers } = await engine.list("local", { status: "complete", limit: 20, cursor: null });
 */
export interface TransferEngine {
  readonly limits: TransferLimits;

  create(principal: string, request: CreateRequest): Promise<Created>;
  /** `create` and the first `append` in one. When the body fails, the upload stays with what was stored; the error carries the cursor. */
  createWith(
    principal: string,
    request: CreateRequest,
    append: AppendRequest,
    /** Called before the first byte is read. */
    onCreated?: (created: Created) => void,
  ): Promise<Created & Appended>;
  /**
   * Makes a final upload of partial ones, which end with it; waits a while for its digest like every last request. The same
   * tickets again give the same upload. `unknown_handle`, `transfer_expired`, `not_active` (a part is not finished: retryable),
   * `invalid_param` (no partial upload), `file_too_large`, `idempotency_conflict`; a wrong declared digest is `checksum_mismatch` (422).
   */
  concatenate(principal: string, request: ConcatenateRequest): Promise<Created>;
  /** Same handle, fresh ticket; starts a `mismatch` over at 0. `not_active` when complete or verifying. */
  resume(principal: string, handle: string): Promise<Created>;

  // --- by upload ticket
  /**
   * Ends a running write (which commits what it has) and tells the state after it. `unknown_handle`, `transfer_expired`. Does not throw for mismatch or verifying.
   * `disturb: false` only looks.
   */
  head(ticket: string, options?: { disturb?: boolean }): Promise<Transfer>;
  append(ticket: string, request: AppendRequest): Promise<Appended>;
  /** Ends a running write only if it is idle (else `upload_locked`), then removes. */
  remove(ticket: string): Promise<void>;

  // --- by principal and handle
  appendTo(principal: string, handle: string, request: AppendRequest): Promise<Appended>;
  /** Never disturbs a writer. Waits up to `waitMs` for a change of status. */
  status(
    principal: string,
    handle: string,
    options?: { waitMs?: number; signal?: AbortSignal },
  ): Promise<Transfer>;
  /** sha256 of the acknowledged bytes so far. Takes at most `budgetMs`. */
  prefixDigest(principal: string, handle: string, budgetMs: number): Promise<PrefixDigest>;
  list(
    principal: string,
    query: { status: TransferStatus | null; limit: number; cursor: string | null },
  ): Promise<ListPage>;
  removeOwn(principal: string, handle: string): Promise<void>;
  /** `not_active` unless complete (with `retryAfterSeconds` while verifying). */
  openOwn(principal: string, handle: string): Promise<OpenFile>;
  mintDownload(
    principal: string,
    handle: string,
    ttlMs: number | null,
  ): Promise<{ transfer: Transfer; ticket: string; expiresAt: Date }>;

  // --- by download ticket
  openDownload(ticket: string): Promise<OpenFile>;

  // --- care
  /** Expiry, dead processes' leases, garbage. Safe in any number of processes at once. */
  sweep(): Promise<SweepReport>;
  /** Reads every complete file again and compares size and digest; repairs nothing. `onFault` is called for each fault. */
  verify(onFault: (fault: StoredFault) => void): Promise<VerifyReport>;
  /** Ends running writes (they commit what they have), stops background work, waits for both. */
  close(): Promise<void>;
}
