/** Uploads whose writer died. */
import { sql } from "kysely";
import type { SegmentRecord, UploadRecord } from "../../../transfer/records.ts";
import type { IdlePage } from "../../../transfer/state-store.ts";
import { first, type Op, type OpContext, oneOff, prepared, rows, run } from "../operation.ts";
import { toSegment, toUpload, type UploadRow } from "../schema.ts";
import { dropSegment, lastSegment, setSegmentLength } from "./segments.ts";
import { uploadByHandle } from "./upload-row.ts";
import { addUsage } from "./usage.ts";

const endOrphan = prepared((db, p: { id: number; fence: number; offset: number }) =>
  db
    .updateTable("upload")
    .set((eb) => ({
      status: sql.lit("receiving"),
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

/** Walks the unfinished uploads by their expiry, since an index holds them in that order; finished files mostly have none. */
export function* idleUploads(
  context: OpContext,
  owners: readonly string[],
  since: number,
  after: IdlePage["next"],
  limit: number,
): Op<IdlePage> {
  const found = yield* rows(
    oneOff(
      context.db
        .selectFrom("upload")
        .selectAll()
        .where("expires_at", "is not", null)
        .where("marked_at", "is", null)
        .where((eb) =>
          eb(eb.refTuple("expires_at", "id"), ">", eb.tuple(after?.expiresAt ?? -1, after?.id ?? -1)),
        )
        .where("status", "=", sql.lit("receiving"))
        .where("lease_active", "=", (eb) => eb.lit(0))
        .where("lease_owner", "in", owners)
        .where("offset_bytes", ">", (eb) => eb.lit(0))
        .where("updated_at", ">=", since)
        .orderBy("expires_at")
        .orderBy("id")
        .limit(limit),
    ),
  );
  const last = found.length < limit ? undefined : found.at(-1);
  return {
    uploads: found.map(toUpload),
    next: last === undefined || last.expires_at === null ? null : { expiresAt: last.expires_at, id: last.id },
  };
}

export function* adoptOrphan(
  context: OpContext,
  handle: string,
  fence: number,
  offset: number | null,
): Op<boolean> {
  const row = yield* first(uploadByHandle(context, { handle }));
  if (row === null || row.fence !== fence) return false;
  const torn = offset !== null && offset < row.offset_bytes;
  const isOrphan = row.status === "receiving" && row.lease_active === 1;
  const canFallBack = torn && (row.status === "receiving" || row.status === "verifying");
  if (!isOrphan && !canFallBack) return false;
  if (torn) {
    yield* cutSegments(context, row, offset);
    if (row.size_bytes === null) yield* addUsage(context, row.principal, offset - row.offset_bytes, 0);
  }
  yield* run(endOrphan(context, { id: row.id, fence: fence + 1, offset: torn ? offset : row.offset_bytes }));
  return true;
}

/** Leaves the first `offset` bytes of the current generation. */
function* cutSegments(context: OpContext, row: UploadRow, offset: number): Op<void> {
  let last = yield* lastSegment(context, row);
  while (last !== null && last.start_bytes >= offset) {
    yield* dropSegment(context, last);
    last = yield* lastSegment(context, row);
  }
  if (last !== null && last.start_bytes + last.length_bytes > offset)
    yield* setSegmentLength(context, last, offset - last.start_bytes);
}
