/**
 * The records of transfers, as every layer sees them. Sizes and offsets are bytes (integers up to 2^53 - 1), times are
 * milliseconds since the epoch by the state store's clock.
 */

/** What the state store keeps; `expired` and `deleted` are not stored but follow from time and absence. */
export type StoredStatus = "receiving" | "verifying" | "complete" | "mismatch";

/** What callers are shown. */
export type TransferStatus = StoredStatus | "expired";

/**
 * What an upload is to tus Concatenation. `whole`: an upload like any other.
 *
 * `partial`: bytes that wait to become part of a final upload. It never becomes `complete`: it is finished when its offset is its size, and
 * stays `receiving`, since nothing reads it, nobody asks for its digest (which says nothing of the whole), and it expires like
 * every upload that nobody went on with. It is not listed, and counts toward limits.
 *
 * `final`: made of partials, whose segments it took over; it has been through `verifying` like every file and takes no bytes. One
 * whose digest was wrong becomes `whole` when it starts over.
 */
export type ConcatRole = "whole" | "partial" | "final";

/** One upload and, once complete, the stored file: the same record for life. */
export interface UploadRecord {
  readonly handle: string;
  readonly principal: string;
  readonly status: StoredStatus;
  readonly filename: string | null;
  readonly contentType: string | null;
  /** `Upload-Metadata` byte for byte as it was received; null where there was none. */
  readonly metadata: string | null;
  /** Announced total; null while deferred. */
  readonly sizeBytes: number | null;
  /** Sum of the contiguous committed segments of the current generation. */
  readonly offset: number;
  /** Lower-case hex the caller announced. */
  readonly declaredSha256: string | null;
  /** Lower-case hex of the whole file, set when status becomes complete (or mismatch: what was received). */
  readonly sha256: string | null;
  /** Rises when a mismatched upload starts over; segments and tickets belong to one generation. */
  readonly generation: number;
  /** Rises at each take-over; every write names it. */
  readonly fence: number;
  /** Process that holds (or last held) the lease. */
  readonly leaseOwner: string | null;
  /** True while a request of the owner is writing (or a verification runs). */
  readonly leaseActive: boolean;
  /** Another process asks for the lease and has not been answered. */
  readonly leaseRequested: boolean;
  readonly createdAt: number;
  /** Last committed byte, or creation. */
  readonly updatedAt: number;
  readonly completedAt: number | null;
  /** Null: never. Does not apply while a live lease is active. */
  readonly expiresAt: number | null;
  /** Speed of the running write as of its last checkpoint; null when none runs. */
  readonly bytesPerSecond: number | null;
  readonly concat: ConcatRole;
  /** `Upload-Concat` of a final upload byte for byte as it was received; the tickets in it have ended. Null for all others. */
  readonly uploadConcat: string | null;
}

/** A run of bytes written by one lease holder. `start + length` of one is `start` of the next. */
export interface SegmentRecord {
  readonly handle: string;
  readonly generation: number;
  /** Order within the generation. */
  readonly seq: number;
  readonly start: number;
  /** Committed bytes; what lies beyond in the blob counts for nothing. */
  readonly length: number;
  /** Name in the blob store. */
  readonly blob: string;
  /** First byte within the blob. */
  readonly blobOffset: number;
  readonly fence: number;
}

export type TicketKind = "upload" | "download";

export interface TicketRecord {
  /** Made by `ticketHash`; the ticket itself is never stored. */
  readonly hash: string;
  readonly handle: string;
  readonly kind: TicketKind;
  readonly generation: number;
  readonly createdAt: number;
  /** Null: as long as its upload. */
  readonly expiresAt: number | null;
}

export interface ProcessRecord {
  readonly id: string;
  readonly pid: number;
  readonly startedAt: number;
  readonly seenAt: number;
}
