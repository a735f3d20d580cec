/** Uploads whose writer died, and the compaction of finished ones. */
import { sql } from "kysely";
import type { SegmentRecord, UploadRecord } from "../../../transfer/records.ts";
import { first, type Op, type OpContext, oneOff, prepared, rows, run } from "../operation.ts";
import { toSegment, toUpload } from "../schema.ts";
import { lastSegment, setSegmentLength } from "./segments.ts";
import { uploadByHandle } from "./upload-row.ts";
import { addUsage } from "./usage.ts";

const endOrphan = prepared((db, p: { id: number; fence: number; offset: number }) =>
  db
    .updateTable("upload")
    .set((eb) => ({
      fence: p.fence,
      offset_bytes: p.offset,
      lease_active: eb.lit(0),
      lease_request: eb.lit(null),
      bytes_per_second: eb.lit(null),
    }))
    .where("id", "=", p.id),
);

export function* orphans(
  context: OpContext,
  owners: readonly string[],
  limit: number,
): Op<{ upload: UploadRecord; segment: SegmentRecord | null }[]> {
  if (owners.length === 0) return [];
  const found = yield* rows(
    oneOff(
      context.db
        .selectFrom("upload")
        .selectAll()
        .where("lease_active", "=", (eb) => eb.lit(1))
        .where("lease_owner", "in", owners)
        .where("status", "=", sql.lit("receiving"))
        .limit(limit),
    ),
  );
  const result: { upload: UploadRecord; segment: SegmentRecord | null }[] = [];
  for (const row of found) {
    const segment = yield* lastSegment(context, row);
    result.push({ upload: toUpload(row), segment: segment && toSegment(row.handle, segment) });
  }
  return result;
}

export function* adoptOrphan(
  context: OpContext,
  handle: string,
  fence: number,
  segmentLength: number | null,
): Op<boolean> {
  const row = yield* first(uploadByHandle(context, { handle }));
  if (row === null || row.fence !== fence || row.lease_active === 0 || row.status !== "receiving")
    return false;
  let offset = row.offset_bytes;
  if (segmentLength !== null) {
    const segment = yield* lastSegment(context, row);
    if (segment !== null && segmentLength < segment.length_bytes) {
      yield* setSegmentLength(context, segment, segmentLength);
      offset = segment.start_bytes + segmentLength;
      if (row.size_bytes === null) yield* addUsage(context, row.principal, offset - row.offset_bytes, 0);
    }
  }
  yield* run(endOrphan(context, { id: row.id, fence: fence + 1, offset }));
  return true;
}
