/**
 * What transfers need of a state store, and what the store promises. The contract suite in
 * `test/contract/transfer-state.ts` holds every backend to it.
 *
 * Promises:
 * - Each method is one transaction: it happens whole or not at all, and when its promise resolves it is durable (on disk
 *   with `fsync: "always"`).
 * - Methods of any number of processes on one store behave as if they ran one after the other.
 * - Time is the store's own clock (`now` in the outcomes is that clock); no method takes the caller's time.
 * - A method that cannot reach the store or is kept waiting by another process for more than its patience (2 s) rejects
 *   with TransferError `storage_unavailable` (`retryAfterSeconds: 1`), `storage_full` where the disk is full, and has
 *   changed nothing. The event loop of the caller is never blocked.
 * - Outcomes are discriminated by `kind`; nothing else is thrown for an ordinary conflict.
 */
import type {
  ConcatRole,
  ProcessRecord,
  SegmentRecord,
  StoredStatus,
  TicketKind,
  TicketRecord,
  UploadRecord,
} from "./records.ts";

export interface NewTicket {
  readonly hash: string;
  readonly kind: TicketKind;
  /** Life in ms from now; null: as long as its upload. */
  readonly ttlMs: number | null;
}

export interface NewUpload {
  readonly handle: string;
  readonly principal: string;
  readonly filename: string | null;
  readonly contentType: string | null;
  readonly metadata: string | null;
  readonly sizeBytes: number | null;
  readonly declaredSha256: string | null;
  readonly concat: ConcatRole;
  /** Expires this long from now; null: never. */
  readonly ttlMs: number | null;
  readonly ticket: NewTicket;
  /** `argumentsHash`: hex sha256 of the canonical arguments. */
  readonly idempotency: {
    readonly tool: string;
    readonly key: string;
    readonly argumentsHash: string;
  } | null;
  readonly quota: Quota;
  /**
   * Where given, the write lease is taken in the same transaction, as `beginWrite` would (fence 1, segment 0 of this
   * blob): creation-with-upload and empty files cost one commit less.
   */
  readonly begin: { readonly owner: string; readonly blob: string } | null;
}

/** Limits of one principal; null: none. Each record counts its size, or while that is unknown its offset. */
export interface Quota {
  readonly maxBytes: number | null;
  readonly maxFiles: number | null;
}

export type CreateOutcome =
  | {
      readonly kind: "created";
      readonly upload: UploadRecord;
      readonly segment: SegmentRecord | null;
      readonly now: number;
    }
  /** Same idempotency key and arguments, and the record still lives: a fresh ticket was added, nothing else changed. */
  | { readonly kind: "existing"; readonly upload: UploadRecord; readonly now: number }
  | { readonly kind: "conflict" }
  | { readonly kind: "quota"; readonly limit: "bytes" | "files"; readonly used: number }
  /** The handle exists already: nothing is ever overwritten. */
  | { readonly kind: "taken" };

/** Making one upload of several partial ones. */
export interface Concatenation {
  /** Of the final upload. */
  readonly handle: string;
  readonly principal: string;
  readonly filename: string | null;
  readonly contentType: string | null;
  readonly metadata: string | null;
  readonly declaredSha256: string | null;
  readonly uploadConcat: string;
  /** Hashes of upload tickets of the partials, in the order of the bytes. */
  readonly partials: readonly string[];
  /** The sum of their sizes may not be above. */
  readonly maxSizeBytes: number;
  readonly ttlMs: number | null;
  readonly ticket: NewTicket;
  /** Process that verifies the whole. */
  readonly owner: string;
  /** Hex sha256 of what else the request says: the same partials with other words are a conflict. */
  readonly argumentsHash: string;
}

/** `index`: position in `partials` of the first one at fault. Nothing was changed but for `created`, and a ticket for `existing`. */
export type ConcatenateOutcome =
  | { readonly kind: "created"; readonly upload: UploadRecord; readonly now: number }
  /** These partials in this order were made into this upload before: a fresh ticket was added. */
  | { readonly kind: "existing"; readonly upload: UploadRecord; readonly now: number }
  | { readonly kind: "conflict" }
  /** No such ticket, another principal's, or named twice (a partial ends with its first use). */
  | { readonly kind: "unknown"; readonly index: number }
  | { readonly kind: "expired"; readonly index: number; readonly upload: UploadRecord }
  | { readonly kind: "not_partial"; readonly index: number }
  | { readonly kind: "unfinished"; readonly index: number; readonly upload: UploadRecord }
  | { readonly kind: "size"; readonly sizeBytes: number }
  /** The handle exists already: nothing is ever overwritten. */
  | { readonly kind: "taken" };

export interface TicketView {
  readonly ticket: TicketRecord;
  readonly upload: UploadRecord;
  readonly now: number;
}

export interface DownloadView extends TicketView {
  readonly segments: readonly SegmentRecord[];
}

export interface BeginWrite {
  readonly handle: string;
  readonly generation: number;
  readonly owner: string;
  /** Next byte the caller brings; null: whatever the offset is. */
  readonly offset: number | null;
  /** Declares the size of a deferred upload in the same transaction (must not be below the offset; equal to a known one). */
  readonly declareSize: number | null;
  /** Fence and segment this process still holds from its last write to this upload: they are extended where still current. */
  readonly held: { readonly fence: number; readonly seq: number } | null;
  /** Take over an active lease of another process, only if the fence is still this one. */
  readonly takeOverFence: number | null;
  /** Name of the blob that a new segment would get. */
  readonly blob: string;
  /** Limit of the principal: declaring a size is checked against it. */
  readonly quota: Quota;
}

export type BeginOutcome =
  /** The lease is this process's and active; bytes go to `segment` from `segment.length` on. */
  | {
      readonly kind: "ok";
      readonly upload: UploadRecord;
      readonly segment: SegmentRecord;
      readonly now: number;
    }
  | { readonly kind: "unknown" }
  /** Not `receiving`, of another generation, or expired (`expiresAt <= now` with no active lease). */
  | { readonly kind: "inactive"; readonly upload: UploadRecord; readonly now: number }
  | { readonly kind: "offset"; readonly upload: UploadRecord; readonly now: number }
  | { readonly kind: "size"; readonly upload: UploadRecord; readonly now: number }
  | { readonly kind: "quota"; readonly limit: "bytes" | "files"; readonly used: number }
  /** Another request is writing (of another process, or of this one). */
  | { readonly kind: "locked"; readonly upload: UploadRecord; readonly now: number };

/** A whole small file: see `small-files.ts`. */
export interface SmallWrite {
  readonly handle: string;
  readonly generation: number;
  /** All bytes of the file. */
  readonly bytes: Uint8Array;
  /** Lower-case hex sha256 of the bytes. */
  readonly sha256: string;
  /** Name under which the bytes are kept; begins with `small:`. */
  readonly blob: string;
  /** Expiry from now as a complete file, and where its digest is not the declared one. */
  readonly fileTtlMs: number | null;
  readonly uploadTtlMs: number | null;
}

export type SmallOutcome =
  /** `complete`, or `mismatch` where another sha256 was declared. */
  | { readonly kind: "ok"; readonly upload: UploadRecord; readonly now: number }
  | { readonly kind: "unknown" }
  | { readonly kind: "inactive"; readonly upload: UploadRecord; readonly now: number }
  /** Bytes are here already, or the size is another. */
  | { readonly kind: "offset"; readonly upload: UploadRecord; readonly now: number }
  | { readonly kind: "locked"; readonly upload: UploadRecord; readonly now: number };

export interface CommitWrite {
  readonly handle: string;
  readonly owner: string;
  readonly fence: number;
  readonly seq: number;
  /** Committed length of the segment from now on; never below what is committed. */
  readonly segmentLength: number;
  /** True: the request goes on (a checkpoint); false: the request has ended, the lease stays but is not active. */
  readonly active: boolean;
  /** Where the size becomes known at the end of the body. */
  readonly sizeBytes: number | null;
  /** What the upload becomes; `receiving` while bytes are missing. `verifying` keeps the lease active for the verification. */
  readonly status: StoredStatus;
  readonly sha256: string | null;
  /** A digest of the whole file announced with this write; kept where none was announced before. */
  readonly declareSha256: string | null;
  /** Expires this long from now; null: never. */
  readonly ttlMs: number | null;
  readonly bytesPerSecond: number | null;
  readonly quota: Quota;
}

export type CommitOutcome =
  /** `leaseRequest`: another process asks for the lease, see `requestLease`. */
  | {
      readonly kind: "ok";
      readonly upload: UploadRecord;
      readonly leaseRequest: LeaseRequestKind | null;
      readonly now: number;
    }
  /** The lease is somebody else's: nothing was changed. `upload` is null where it is gone. */
  | { readonly kind: "fenced"; readonly upload: UploadRecord | null }
  | { readonly kind: "quota"; readonly limit: "bytes" | "files"; readonly used: number };

/** `end`: commit and stop. `if_idle`: only if no byte came for a while, else refuse. */
export type LeaseRequestKind = "end" | "if_idle";

export interface LeaseRequest {
  readonly handle: string;
  readonly fence: number;
  readonly kind: LeaseRequestKind;
}

export interface ListQuery {
  readonly principal: string;
  readonly status: TransferStatusFilter | null;
  readonly limit: number;
  /** Exclusive: rows after this one in the order (createdAt, handle). */
  readonly after: { readonly createdAt: number; readonly handle: string } | null;
}

export interface IdlePage {
  readonly uploads: readonly UploadRecord[];
  /** Null at the end. */
  readonly next: { readonly expiresAt: number; readonly id: number } | null;
}

export type TransferStatusFilter = StoredStatus | "expired";

export interface TransferState {
  // --- uploads
  createUpload(input: NewUpload): Promise<CreateOutcome>;
  /**
   * Makes a final upload of finished partial ones: it takes over their segments in order (no byte is copied, and no blob becomes
   * garbage by it), is `verifying` with an active lease of `owner`, and has their usage as one file. The partials' records,
   * tickets and idempotency keys end in the same transaction.
   */
  concatenate(input: Concatenation): Promise<ConcatenateOutcome>;
  /** One read; null where no such ticket is known. Expiry and generation are the caller's to judge. */
  findByTicket(hash: string): Promise<TicketView | null>;
  /** One read: `findByTicket` and, where the upload is complete, its `segments` (else none). */
  findDownload(hash: string): Promise<DownloadView | null>;
  /** One read. */
  findUpload(handle: string): Promise<{ upload: UploadRecord; now: number } | null>;
  /** Uploads of the principal, `concat` partials left out, in the order (createdAt, handle). */
  listUploads(query: ListQuery): Promise<{ uploads: UploadRecord[]; now: number }>;
  /** Complete uploads of all principals, partials included, in the order of their handles, after this one (exclusive; null: from the start). */
  completeUploads(after: string | null, limit: number): Promise<UploadRecord[]>;
  /** Segments of the current generation in order, those of length 0 left out. */
  segments(handle: string): Promise<SegmentRecord[]>;
  /**
   * Adds a ticket of the record's current generation; of each kind the newest 16 stay. `principal` null: any.
   * Null where the handle is unknown or another principal's.
   */
  addTicket(
    handle: string,
    principal: string | null,
    ticket: NewTicket,
  ): Promise<{ upload: UploadRecord; now: number } | null>;
  /**
   * `mismatch` becomes `receiving` at offset 0 in a new generation: older tickets are removed, the new one added, `sha256`
   * cleared, the fence raised, no lease; a final upload becomes a whole one. Older segments stay until the first commit of the new generation. Null where the record is not
   * in `mismatch` (nothing changed).
   */
  startOver(
    handle: string,
    ticket: NewTicket,
    ttlMs: number | null,
  ): Promise<{ upload: UploadRecord; now: number } | null>;
  /**
   * Removes record, tickets, idempotency key and segment rows; blobs that no segment names any more become garbage; usage
   * falls. `ifFence`: only if the fence is still this and no lease is active. `removed: false` where it was not there or `ifFence` failed.
   */
  removeUpload(
    handle: string,
    ifFence: number | null,
  ): Promise<{ removed: boolean; upload: UploadRecord | null }>;

  // --- writing
  /**
   * Takes or extends the write lease. A new lease raises the fence and inserts a segment row of length 0 at the offset;
   * rows of length 0 of older fences are removed and their blobs become garbage. Clears any lease request.
   */
  beginWrite(input: BeginWrite): Promise<BeginOutcome>;
  /**
   * Makes written and synced bytes count. In one transaction: fence checked, segment length, offset, size, status,
   * digest, expiry, speed, usage; `completedAt` when it becomes complete. The first commit of a generation with bytes (or that completes it)
   * removes the segments of older generations (their blobs become garbage). Usage follows the size, or the offset while unknown.
   */
  commitWrite(input: CommitWrite): Promise<CommitOutcome>;
  /**
   * Lease, bytes and completion of a whole small file in one transaction. Only where no lease is active, no byte is here and the size is
   * that of the bytes.
   */
  storeSmall(input: SmallWrite): Promise<SmallOutcome>;
  /** Bytes of a small file by its name; null where there are none. */
  smallFile(blob: string): Promise<Uint8Array | null>;
  /** The request ended with nothing to commit: the lease stays with the owner and is not active. No effect where fenced. */
  releaseWrite(handle: string, owner: string, fence: number): Promise<void>;
  /** Asks the holder of an active lease of this fence to end; a stronger request replaces a weaker one. False where the lease is no longer that. */
  requestLease(handle: string, fence: number, kind: LeaseRequestKind): Promise<boolean>;
  /** Refuses an `if_idle` request: cleared. */
  refuseLease(handle: string, fence: number): Promise<void>;
  /** One read: open requests on active leases of this owner, at most 1,000. */
  leaseRequests(owner: string): Promise<LeaseRequest[]>;
  /** Ends verification: `verifying` of this generation becomes `complete` or `mismatch` with this digest, lease not active. Null where it was not verifying. */
  settle(
    handle: string,
    generation: number,
    outcome: { status: "complete" | "mismatch"; sha256: string; ttlMs: number | null },
  ): Promise<UploadRecord | null>;
  /** Makes this process the owner of a verification whose owner is in `deadOwners` (or null). At most `limit`. */
  claimVerifications(owner: string, deadOwners: readonly string[], limit: number): Promise<UploadRecord[]>;

  // --- after a crash
  /** Uploads with an active lease of one of these owners that are `receiving`, with their last segment; at most `limit`. */
  orphans(
    owners: readonly string[],
    limit: number,
  ): Promise<{ upload: UploadRecord; segment: SegmentRecord | null }[]>;
  /**
   * Uploads that are `receiving` at an offset above 0 with no active lease, were written last by one of these owners, and not before
   * `since`; expired ones may be left out. At most `limit` a call; `next` is the `after` of the next one.
   */
  idleUploads(
    owners: readonly string[],
    since: number,
    after: IdlePage["next"],
    limit: number,
  ): Promise<IdlePage>;
  /**
   * Ends an orphan's lease (fence raised, not active). `offset`: how many bytes are really there in a row where these are fewer
   * than committed; segments are cut or dropped accordingly (their blobs become garbage), and one that was `verifying` is
   * `receiving` again. False (nothing changed) where the fence has moved on, or where no lease is active and no byte is missing.
   */
  adoptOrphan(handle: string, fence: number, offset: number | null): Promise<boolean>;

  // --- compaction
  /** Replaces all segments of a complete upload by one; false (nothing changed) where its status or generation is another. Old blobs become garbage. */
  replaceSegments(
    handle: string,
    generation: number,
    segment: { blob: string; length: number },
  ): Promise<boolean>;
  /** Names a blob that is about to be written outside a segment, as garbage from now on: a crash leaves nothing unnamed. */
  announceBlob(blob: string): Promise<void>;

  // --- expiry and garbage
  /**
   * First look and second look. Marks records whose `expiresAt <= now` with no active lease; unmarks those that no longer
   * are; removes (as removeUpload) those marked at least `graceMs` ago and still due. At most `limit` of each.
   */
  expire(graceMs: number, limit: number): Promise<{ marked: number; unmarked: number; removed: string[] }>;
  /** Blobs that have been garbage for at least `graceMs` and that no segment names; at most `limit`. */
  garbage(graceMs: number, limit: number): Promise<string[]>;
  /** After their files are gone; small files go with it. Names that a segment names again are kept out of harm: they are not forgotten but returned. */
  forgetGarbage(blobs: readonly string[]): Promise<void>;
  /** How many blobs are garbage, and when the one that is it longest became so; null: there are none. */
  garbageLeft(): Promise<{ blobs: number; since: number | null }>;
  /**
   * Gives a little of the space that forgotten records had back to the disk; true where there is more to give. `all`: with what would
   * otherwise be kept for records to come.
   */
  giveBackSpace(all: boolean): Promise<boolean>;
  /** Of these names, the ones that no segment and no garbage row names. At most 1,000 names a call. */
  unknownBlobs(blobs: readonly string[]): Promise<string[]>;
  /** Puts these names in the garbage list (grace counts from now). */
  addGarbage(blobs: readonly string[]): Promise<void>;
  /** Expired download tickets older than `graceMs` past their time are removed. */
  removeStaleTickets(graceMs: number, limit: number): Promise<number>;

  // --- processes
  registerProcess(id: string, pid: number): Promise<void>;
  heartbeat(id: string): Promise<void>;
  processes(): Promise<{ processes: ProcessRecord[]; now: number }>;
  /** Also leaves no active lease: inactive ones keep their owner. */
  removeProcess(id: string): Promise<void>;
  /** Sum of the principal. */
  usage(principal: string): Promise<{ bytes: number; files: number }>;
}

/** What a store tells of changes made anywhere, so that waiting costs nothing. */
export interface ChangeFeed {
  /**
   * Calls back after records may have changed, by this process (at once) or another (within about half a second), until the
   * returned function is called. Nothing is polled while nobody subscribes.
   */
  subscribe(onChange: () => void): () => void;
}

/** Whether a process of this store is certainly dead (its operating-system lock is free). */
export interface Liveness {
  readonly processId: string;
  isDead(processId: string): Promise<boolean>;
}
