/**
 * The tables of the state as every database has them, and how their rows become records. Times are ms since the epoch,
 * sizes bytes; truth is 0 or 1. The migrations of each database create exactly these columns.
 */

import type { Generated } from "kysely";
import type {
  ConcatRole,
  ProcessRecord,
  SegmentRecord,
  StoredStatus,
  TicketKind,
  TicketRecord,
  UploadRecord,
} from "../../transfer/records.ts";
import type { LeaseRequestKind } from "../../transfer/state-store.ts";
import type { TaskTables } from "./tasks/tables.ts";

export interface UploadRow {
  /** Within the database only: what belongs to an upload names it by this, and so lies together. */
  id: number;
  handle: string;
  principal: string;
  status: StoredStatus;
  filename: string | null;
  content_type: string | null;
  metadata: string | null;
  size_bytes: number | null;
  offset_bytes: number;
  declared_sha256: string | null;
  sha256: string | null;
  generation: number;
  fence: number;
  lease_owner: string | null;
  lease_active: number;
  lease_request: LeaseRequestKind | null;
  created_at: number;
  updated_at: number;
  completed_at: number | null;
  expires_at: number | null;
  /** First look of expiry; null where the record was not due, or has been touched since. */
  marked_at: number | null;
  bytes_per_second: number | null;
  concat: ConcatRole;
  upload_concat: string | null;
}

export interface SegmentTable {
  upload_id: number;
  generation: number;
  seq: number;
  start_bytes: number;
  length_bytes: number;
  blob: string;
  blob_offset: number;
  fence: number;
}

export interface TicketTable {
  hash: string;
  upload_id: number;
  kind: TicketKind;
  /** Order of making among the tickets of one upload and kind. */
  seq: number;
  generation: number;
  created_at: number;
  expires_at: number | null;
}

export interface IdempotencyTable {
  principal: string;
  tool: string;
  key: string;
  arguments_hash: string;
  upload_id: number;
}

/** Blobs to remove: those here that no segment names, once they have been here long enough. */
export interface GarbageTable {
  blob: string;
  since: number;
}

/** Whole files that are kept here and not in the blob store. */
export interface SmallFileTable {
  blob: string;
  bytes: Uint8Array;
}

/** Running sums over `upload`, so that a quota costs one row and not a scan. */
export interface UsageTable {
  principal: string;
  bytes: number;
  files: number;
}

export interface ProcessTable {
  id: string;
  pid: number;
  started_at: number;
  seen_at: number;
}

export interface StateTables extends TaskTables {
  upload: Omit<UploadRow, "id"> & { id: Generated<number> };
  segment: SegmentTable;
  ticket: TicketTable;
  idempotency: IdempotencyTable;
  garbage: GarbageTable;
  small_file: SmallFileTable;
  usage: UsageTable;
  process: ProcessTable;
}

/** Past its time, and nobody is writing to it. */
export const isDue = (row: Pick<UploadRow, "expires_at" | "lease_active">, now: number): boolean =>
  row.expires_at !== null && row.expires_at <= now && row.lease_active === 0;

/** What a record counts against its principal's quota. */
export const countedBytes = (row: Pick<UploadRow, "size_bytes" | "offset_bytes">): number =>
  row.size_bytes ?? row.offset_bytes;

export const expiryFrom = (now: number, ttlMs: number | null): number | null =>
  ttlMs === null ? null : now + ttlMs;

export const toUpload = (row: UploadRow): UploadRecord => ({
  handle: row.handle,
  principal: row.principal,
  status: row.status,
  filename: row.filename,
  contentType: row.content_type,
  metadata: row.metadata,
  sizeBytes: row.size_bytes,
  offset: row.offset_bytes,
  declaredSha256: row.declared_sha256,
  sha256: row.sha256,
  generation: row.generation,
  fence: row.fence,
  leaseOwner: row.lease_owner,
  leaseActive: row.lease_active === 1,
  leaseRequested: row.lease_request !== null,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  completedAt: row.completed_at,
  expiresAt: row.expires_at,
  bytesPerSecond: row.bytes_per_second,
  concat: row.concat,
  uploadConcat: row.upload_concat,
});

export const toSegment = (handle: string, row: SegmentTable): SegmentRecord => ({
  handle,
  generation: row.generation,
  seq: row.seq,
  start: row.start_bytes,
  length: row.length_bytes,
  blob: row.blob,
  blobOffset: row.blob_offset,
  fence: row.fence,
});

export const toTicket = (handle: string, row: TicketTable): TicketRecord => ({
  hash: row.hash,
  handle,
  kind: row.kind,
  generation: row.generation,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
});

export const toProcess = (row: ProcessTable): ProcessRecord => ({
  id: row.id,
  pid: row.pid,
  startedAt: row.started_at,
  seenAt: row.seen_at,
});
