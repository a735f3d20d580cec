/** How records end: on request, or by expiry in two looks, so that a clock that jumps and comes back loses nothing. */
import { sql } from "kysely";
import type { UploadRecord } from "../../../transfer/records.ts";
import { first, type Op, type OpContext, prepared, rows, run } from "../operation.ts";
import { countedBytes, toUpload, type UploadRow } from "../schema.ts";
import { dropSegmentsBelow } from "./segments.ts";
import { uploadByHandle } from "./upload-row.ts";
import { addUsage } from "./usage.ts";

const deleteUpload = prepared((db, p: { id: number }) => db.deleteFrom("upload").where("id", "=", p.id));

/** Tickets and the idempotency key go with the row (ON DELETE CASCADE). */
export function* dropUpload(context: OpContext, row: UploadRow): Op<void> {
  yield* dropSegmentsBelow(context, row, row.generation + 1);
  yield* run(deleteUpload(context, { id: row.id }));
  yield* addUsage(context, row.principal, -countedBytes(row), -1);
}

export function* removeUpload(
  context: OpContext,
  handle: string,
  ifFence: number | null,
): Op<{ removed: boolean; upload: UploadRecord | null }> {
  const row = yield* first(uploadByHandle(context, { handle }));
  if (row === null) return { removed: false, upload: null };
  const upload = toUpload(row);
  if (ifFence !== null && (row.fence !== ifFence || row.lease_active === 1))
    return { removed: false, upload };
  yield* dropUpload(context, row);
  return { removed: true, upload };
}

/** Looks marked by a clock that was ahead (`marked_at` in the future) start again, or they would hold for as long as it was. */
const remark = prepared((db, p: { now: number; limit: number }) =>
  db
    .updateTable("upload")
    .set({ marked_at: p.now })
    .where("id", "in", (eb) =>
      eb
        .selectFrom("upload")
        .select("id")
        .where("marked_at", "is not", null)
        .where("marked_at", ">", p.now)
        .limit(p.limit),
    ),
);

/** Written leases and new states take the mark away themselves; what remains is a clock that has come back. */
const unmark = prepared((db, p: { now: number; limit: number }) =>
  db
    .updateTable("upload")
    .set((eb) => ({ marked_at: eb.lit(null) }))
    .where("id", "in", (eb) =>
      eb
        .selectFrom("upload")
        .select("id")
        .where("marked_at", "is not", null)
        .where("expires_at", ">", p.now)
        .limit(p.limit),
    ),
);

const ripe = prepared((db, p: { now: number; markedBefore: number; limit: number }) =>
  db
    .selectFrom("upload")
    .selectAll()
    .where("marked_at", "is not", null)
    .where("marked_at", "<=", p.markedBefore)
    .where("expires_at", "<=", p.now)
    .where("lease_active", "=", (eb) => eb.lit(0))
    .orderBy("marked_at")
    .limit(p.limit),
);

const mark = prepared((db, p: { now: number; limit: number }) =>
  db
    .updateTable("upload")
    .set({ marked_at: p.now })
    .where("id", "in", (eb) =>
      eb
        .selectFrom("upload")
        .select("id")
        .where("expires_at", "is not", null)
        .where("expires_at", "<=", p.now)
        .where("marked_at", "is", sql.lit(null))
        .where("lease_active", "=", eb.lit(0))
        .orderBy("expires_at")
        .limit(p.limit),
    ),
);

export function* expire(
  context: OpContext,
  graceMs: number,
  limit: number,
): Op<{ marked: number; unmarked: number; removed: string[] }> {
  const { now } = context;
  const unmarked = yield* run(unmark(context, { now, limit }));
  yield* run(remark(context, { now, limit }));
  // Removing comes before marking: one call never is both looks.
  const due = yield* rows(ripe(context, { now, markedBefore: now - graceMs, limit }));
  for (const row of due) yield* dropUpload(context, row);
  const marked = yield* run(mark(context, { now, limit }));
  return { marked, unmarked, removed: due.map(({ handle }) => handle) };
}
