/**
 * The write lease and what is committed under it. These are the statements of every PATCH, so they touch the columns that
 * change and no others: an index is rewritten for each of its columns that an UPDATE names.
 */
import type { BeginOutcome, BeginWrite, CommitOutcome, CommitWrite } from "../../../transfer/state-store.ts";
import { first, type Op, type OpContext, prepared, run } from "../operation.ts";
import {
  countedBytes,
  expiryFrom,
  isDue,
  type SegmentTable,
  toSegment,
  toUpload,
  type UploadRow,
} from "../schema.ts";
import {
  appendSegment,
  dropSegment,
  dropSegmentsBelow,
  findSegment,
  lastSegment,
  setSegmentLength,
} from "./segments.ts";
import { updateState, uploadByHandle, withState } from "./upload-row.ts";
import { addUsage, checkQuota } from "./usage.ts";

const takeLease = prepared((db, p: { id: number; owner: string; fence: number; size: number | null }) =>
  db
    .updateTable("upload")
    .set((eb) => ({
      lease_owner: p.owner,
      lease_active: eb.lit(1),
      lease_request: eb.lit(null),
      fence: p.fence,
      size_bytes: p.size,
      marked_at: eb.lit(null),
    }))
    .where("id", "=", p.id),
);

interface Progress {
  readonly id: number;
  readonly size: number | null;
  readonly offset: number;
  readonly active: number;
  readonly request: UploadRow["lease_request"];
  readonly updatedAt: number;
  readonly expiresAt: number | null;
  readonly bytesPerSecond: number | null;
}

const commitProgress = prepared((db, p: Progress) =>
  db
    .updateTable("upload")
    .set({
      size_bytes: p.size,
      offset_bytes: p.offset,
      lease_active: p.active,
      lease_request: p.request,
      updated_at: p.updatedAt,
      expires_at: p.expiresAt,
      bytes_per_second: p.bytesPerSecond,
    })
    .where("id", "=", p.id),
);

/** Apart from the progress of every write: it comes once in the life of an upload, if at all. */
const declareDigest = prepared((db, p: { id: number; sha256: string }) =>
  db.updateTable("upload").set({ declared_sha256: p.sha256 }).where("id", "=", p.id),
);

const endLease = prepared((db, p: { handle: string; owner: string; fence: number }) =>
  db
    .updateTable("upload")
    .set((eb) => ({ lease_active: eb.lit(0), lease_request: eb.lit(null), bytes_per_second: eb.lit(null) }))
    .where("handle", "=", p.handle)
    .where("lease_owner", "=", p.owner)
    .where("fence", "=", p.fence)
    .where("lease_active", "=", (eb) => eb.lit(1))
    .where("status", "=", "receiving"),
);

/** Whether the caller's last lease is still the current one, so that it goes on in the same segment. */
function* heldSegment(context: OpContext, row: UploadRow, input: BeginWrite): Op<SegmentTable | null> {
  const { held, owner } = input;
  if (held === null || row.lease_active === 1 || row.lease_owner !== owner || row.fence !== held.fence)
    return null;
  const segment = yield* findSegment(context, row, held.seq);
  return segment?.fence === held.fence ? segment : null;
}

export function* beginWrite(context: OpContext, input: BeginWrite): Op<BeginOutcome> {
  const { now } = context;
  const { handle, owner, offset, declareSize, takeOverFence, quota } = input;
  const row = yield* first(uploadByHandle(context, { handle }));
  if (row === null) return { kind: "unknown" };
  const seen = { upload: toUpload(row), now };
  if (row.status !== "receiving" || row.generation !== input.generation || isDue(row, now)) {
    return { kind: "inactive", ...seen };
  }
  if (row.lease_active === 1 && takeOverFence !== row.fence) return { kind: "locked", ...seen };
  if (offset !== null && offset !== row.offset_bytes) return { kind: "offset", ...seen };
  let size = row.size_bytes;
  if (declareSize !== null && declareSize !== size) {
    if (size !== null || declareSize < row.offset_bytes) return { kind: "size", ...seen };
    const more = { bytes: declareSize - row.offset_bytes, files: 0 };
    const exceeded = yield* checkQuota(context, row.principal, quota, more);
    if (exceeded !== null) return exceeded;
    yield* addUsage(context, row.principal, more.bytes, 0);
    size = declareSize;
  }
  let segment = yield* heldSegment(context, row, input);
  const fence = segment === null ? row.fence + 1 : row.fence;
  if (segment === null) {
    const last = yield* lastSegment(context, row);
    let seq = last === null ? 0 : last.seq + 1;
    if (last !== null && last.length_bytes === 0) {
      // Nobody's bytes are lost: nothing of it was ever committed, and its lease can commit nothing any more. Only
      // the last segment of a generation can be empty.
      yield* dropSegment(context, last);
      seq = last.seq;
    }
    segment = yield* appendSegment(context, { upload: row, seq, fence, blob: input.blob });
  }
  yield* run(takeLease(context, { id: row.id, owner, fence, size }));
  const taken: UploadRow = {
    ...row,
    lease_owner: owner,
    lease_active: 1,
    lease_request: null,
    fence,
    size_bytes: size,
    marked_at: null,
  };
  return { kind: "ok", upload: toUpload(taken), segment: toSegment(handle, segment), now };
}

/** What no engine may ask for; a fault of the program and not of its callers. */
function assertCommit(row: UploadRow, segment: SegmentTable, input: CommitWrite): void {
  const { segmentLength, sizeBytes } = input;
  if (segmentLength < segment.length_bytes) {
    throw new RangeError(
      `Segment of ${input.handle} would shrink from ${segment.length_bytes} to ${segmentLength}`,
    );
  }
  if (sizeBytes !== null && row.size_bytes !== null && sizeBytes !== row.size_bytes) {
    throw new RangeError(`Size of ${input.handle} is ${row.size_bytes} and cannot become ${sizeBytes}`);
  }
  const size = row.size_bytes ?? sizeBytes;
  const offset = segment.start_bytes + segmentLength;
  if (size !== null && offset > size) {
    throw new RangeError(`Offset ${offset} of ${input.handle} would pass its size ${size}`);
  }
  if (input.status !== "receiving" && offset !== size) {
    throw new RangeError(`${input.handle} cannot be ${input.status} at ${offset} of ${size} bytes`);
  }
}

export function* commitWrite(context: OpContext, input: CommitWrite): Op<CommitOutcome> {
  const { now } = context;
  const { handle, owner, fence, seq, segmentLength, status } = input;
  let row = yield* first(uploadByHandle(context, { handle }));
  if (row === null) return { kind: "fenced", upload: null };
  const holdsLease =
    row.fence === fence && row.lease_owner === owner && row.lease_active === 1 && row.status === "receiving";
  const segment = holdsLease ? yield* findSegment(context, row, seq) : null;
  if (segment?.fence !== fence) return { kind: "fenced", upload: toUpload(row) };
  assertCommit(row, segment, input);

  const size = row.size_bytes ?? input.sizeBytes;
  const offset = segment.start_bytes + segmentLength;
  const more = (size ?? offset) - countedBytes(row);
  const exceeded = yield* checkQuota(context, row.principal, input.quota, { bytes: more, files: 0 });
  if (exceeded !== null) return exceeded;
  yield* addUsage(context, row.principal, more, 0);
  if (row.declared_sha256 === null && input.declareSha256 !== null) {
    yield* run(declareDigest(context, { id: row.id, sha256: input.declareSha256 }));
    row = { ...row, declared_sha256: input.declareSha256 };
  }
  if (segmentLength !== segment.length_bytes) yield* setSegmentLength(context, segment, segmentLength);
  if (row.generation > 1 && (offset > 0 || status !== "receiving")) {
    yield* dropSegmentsBelow(context, row, row.generation);
  }

  const updatedAt = offset > row.offset_bytes ? now : row.updated_at;
  const expiresAt = expiryFrom(now, input.ttlMs);
  if (status === "receiving") {
    const active = input.active ? 1 : 0;
    const request = input.active ? row.lease_request : null;
    const bytesPerSecond = input.active ? input.bytesPerSecond : null;
    yield* run(
      commitProgress(context, {
        id: row.id,
        size,
        offset,
        active,
        request,
        updatedAt,
        expiresAt,
        bytesPerSecond,
      }),
    );
    const next: UploadRow = {
      ...row,
      size_bytes: size,
      offset_bytes: offset,
      lease_active: active,
      lease_request: request,
      updated_at: updatedAt,
      expires_at: expiresAt,
      bytes_per_second: bytesPerSecond,
    };
    return { kind: "ok", upload: toUpload(next), leaseRequest: row.lease_request, now };
  }
  const next = withState(row, {
    status,
    size_bytes: size,
    offset_bytes: offset,
    sha256: input.sha256,
    lease_active: status === "verifying" ? 1 : 0,
    updated_at: updatedAt,
    completed_at: status === "complete" ? now : null,
    expires_at: expiresAt,
  });
  yield* run(updateState(context, next));
  return { kind: "ok", upload: toUpload(next), leaseRequest: row.lease_request, now };
}

export function* releaseWrite(context: OpContext, handle: string, owner: string, fence: number): Op<void> {
  yield* run(endLease(context, { handle, owner, fence }));
}
