/** What the contract of TransferState needs of a backend, and inputs with nothing special about them. */
import { randomBytes } from "node:crypto";
import { expect } from "vitest";
import type { SegmentRecord, UploadRecord } from "../../../src/transfer/records.ts";
import type {
  BeginOutcome,
  BeginWrite,
  CommitOutcome,
  CommitWrite,
  Concatenation,
  NewTicket,
  NewUpload,
  Quota,
  TransferState,
} from "../../../src/transfer/state-store.ts";

export interface StateUnderTest {
  readonly state: TransferState;
  /** A second store on the same records, as another process has it. */
  readonly other: TransferState;
  /** Moves every time in every row back, as if this long had passed (or, negative, the clock had been set back). */
  passTime(ms: number): Promise<void>;
  /** What the principal's records count, summed up from the records themselves. */
  recount(principal: string): Promise<{ bytes: number; files: number }>;
  cleanup(): Promise<void>;
}

export type OpenState = () => Promise<StateUnderTest>;

export const hourMs = 3_600_000;
export const dayMs = 24 * hourMs;
export const noQuota: Quota = { maxBytes: null, maxFiles: null };

const random = (bytes: number): string => randomBytes(bytes).toString("hex");
const newHandle = (): string => `fh_${random(16)}`;
export const newBlob = (): string => `b_${random(16)}`;

export const newTicket = (more: Partial<NewTicket> = {}): NewTicket => ({
  hash: random(32),
  kind: "upload",
  ttlMs: null,
  ...more,
});

export const newUpload = (more: Partial<NewUpload> = {}): NewUpload => ({
  handle: newHandle(),
  principal: "ada",
  filename: "notes.txt",
  contentType: "text/plain",
  metadata: "filename bm90ZXMudHh0,filetype dGV4dC9wbGFpbg==",
  sizeBytes: 1_000,
  declaredSha256: null,
  concat: "whole",
  ttlMs: dayMs,
  ticket: newTicket(),
  idempotency: null,
  quota: noQuota,
  begin: null,
  ...more,
});

export const newConcatenation = (more: Partial<Concatenation> = {}): Concatenation => ({
  handle: newHandle(),
  principal: "ada",
  filename: "whole.bin",
  contentType: null,
  metadata: null,
  declaredSha256: null,
  uploadConcat: "final;/files/a /files/b",
  partials: [],
  maxSizeBytes: 2 ** 40,
  ttlMs: dayMs,
  ticket: newTicket(),
  owner: "p_one",
  argumentsHash: "e".repeat(64),
  ...more,
});

/** A partial upload with all its bytes, in a blob of its own. */
export async function finishedPartial(
  state: TransferState,
  length: number,
  more: Partial<NewUpload> = {},
): Promise<{ upload: UploadRecord; hash: string; blob: string }> {
  const ticket = newTicket();
  const blob = newBlob();
  const upload = await created(state, { sizeBytes: length, concat: "partial", ticket, ...more });
  const lease = await begun(state, upload, { blob });
  return { upload: (await committed(state, lease, length)).upload, hash: ticket.hash, blob };
}

export async function created(state: TransferState, more: Partial<NewUpload> = {}): Promise<UploadRecord> {
  const outcome = await state.createUpload(newUpload(more));
  if (outcome.kind !== "created") throw new Error(`Not created: ${outcome.kind}`);
  return outcome.upload;
}

export const beginOf = (upload: UploadRecord, more: Partial<BeginWrite> = {}): BeginWrite => ({
  handle: upload.handle,
  generation: upload.generation,
  owner: "p_one",
  offset: null,
  declareSize: null,
  held: null,
  takeOverFence: null,
  blob: newBlob(),
  quota: noQuota,
  ...more,
});

export type Begun = Extract<BeginOutcome, { kind: "ok" }>;

export async function begun(
  state: TransferState,
  upload: UploadRecord,
  more: Partial<BeginWrite> = {},
): Promise<Begun> {
  const outcome = await state.beginWrite(beginOf(upload, more));
  if (outcome.kind !== "ok") throw new Error(`Not begun: ${outcome.kind}`);
  return outcome;
}

/** A commit of `length` bytes in all of the segment; the request has ended. */
export const commitOf = (
  { upload, segment }: { upload: UploadRecord; segment: SegmentRecord },
  length: number,
  more: Partial<CommitWrite> = {},
): CommitWrite => ({
  handle: upload.handle,
  owner: upload.leaseOwner ?? "",
  fence: upload.fence,
  seq: segment.seq,
  segmentLength: length,
  active: false,
  sizeBytes: null,
  status: "receiving",
  sha256: null,
  declareSha256: null,
  ttlMs: dayMs,
  bytesPerSecond: null,
  quota: noQuota,
  ...more,
});

export type Committed = Extract<CommitOutcome, { kind: "ok" }>;

export async function committed(
  state: TransferState,
  lease: { upload: UploadRecord; segment: SegmentRecord },
  length: number,
  more: Partial<CommitWrite> = {},
): Promise<Committed> {
  const outcome = await state.commitWrite(commitOf(lease, length, more));
  if (outcome.kind !== "ok") throw new Error(`Not committed: ${outcome.kind}`);
  return outcome;
}

/** Bytes written by a lease of their own, which has ended. */
export async function written(
  state: TransferState,
  upload: UploadRecord,
  length: number,
  more: Partial<CommitWrite> = {},
): Promise<UploadRecord> {
  const lease = await begun(state, upload);
  return (await committed(state, lease, length, more)).upload;
}

/** An upload of `size` bytes that has reached this status. */
export async function finished(
  state: TransferState,
  status: "complete" | "mismatch" | "verifying",
  size = 1_000,
  more: Partial<NewUpload> = {},
): Promise<UploadRecord> {
  const upload = await created(state, { sizeBytes: size, ...more });
  return await written(state, upload, size, {
    status,
    sha256: status === "verifying" ? null : "ab".repeat(32),
  });
}

export async function found(state: TransferState, handle: string): Promise<UploadRecord> {
  const view = await state.findUpload(handle);
  if (view === null) throw new Error(`No upload ${handle}`);
  return view.upload;
}

/** Nothing of the record has changed. */
export async function expectUnchanged(state: TransferState, upload: UploadRecord): Promise<void> {
  expect(await found(state, upload.handle)).toEqual(upload);
}
