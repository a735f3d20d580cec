/** How tasks end: by their handler, by a cancel, and for good by expiry in two looks. */
import { sql } from "kysely";
import type { TaskRecord } from "../../../tasks/records.ts";
import type { FinishTask } from "../../../tasks/state-store.ts";
import { first, type Op, type OpContext, prepared, run } from "../operation.ts";
import { currentRecord, endTask, holds, recordOf, taskById } from "./task-row.ts";

export function* finishTask(
  context: OpContext,
  input: FinishTask,
): Op<{ task: TaskRecord; now: number } | null> {
  const { taskId, status, result, error } = input;
  const row = yield* first(taskById(context, { taskId }));
  if (!holds(row, input)) return null;
  // A cancel that was accepted stands, whichever came first to the handler.
  const end =
    row.cancel_requested === 1
      ? { status: "cancelled" as const, result: null, error: null }
      : { status, result, error };
  yield* endTask(context, row, end);
  return { task: yield* currentRecord(context, taskId), now: context.now };
}

const requestCancel = prepared((db, p: { taskId: string; called: number; now: number }) =>
  db
    .updateTable("task")
    .set((eb) => ({
      cancel_requested: eb.lit(1),
      called: p.called,
      version: eb("version", "+", eb.lit(1)),
      updated_at: p.now,
    }))
    .where("task_id", "=", p.taskId),
);

export function* cancelTask(
  context: OpContext,
  taskId: string,
  goneOwners: readonly string[],
): Op<{ task: TaskRecord; now: number } | null> {
  const { now } = context;
  const row = yield* first(taskById(context, { taskId }));
  if (row === null) return null;
  if (row.ended_at !== null) return { task: yield* recordOf(context, row, true), now };
  const held = row.lease_owner !== null && !goneOwners.includes(row.lease_owner);
  if (held && row.cancel_requested === 1) return { task: yield* recordOf(context, row, true), now };
  yield* run(requestCancel(context, { taskId, called: held ? 1 : 0, now }));
  if (!held) yield* endTask(context, row, { status: "cancelled", result: null, error: null });
  return { task: yield* currentRecord(context, taskId), now };
}

/** Looks marked by a clock that was ahead (`marked_at` in the future) start again, or they would hold for as long as it was. */
const remark = prepared((db, p: { now: number; limit: number }) =>
  db
    .updateTable("task")
    .set({ marked_at: p.now })
    .where("task_id", "in", (eb) =>
      eb.selectFrom("task").select("task_id").where("marked_at", ">", p.now).limit(p.limit),
    ),
);

/** A clock that has come back. */
const unmark = prepared((db, p: { now: number; limit: number }) =>
  db
    .updateTable("task")
    .set((eb) => ({ marked_at: eb.lit(null) }))
    .where("task_id", "in", (eb) =>
      eb
        .selectFrom("task")
        .select("task_id")
        .where("marked_at", "is not", null)
        .where("expires_at", ">", p.now)
        .limit(p.limit),
    ),
);

/** Everything else of the task goes with its row (ON DELETE CASCADE). */
const removeRipe = prepared((db, p: { now: number; markedBefore: number; limit: number }) =>
  db
    .deleteFrom("task")
    .where("task_id", "in", (eb) =>
      eb
        .selectFrom("task")
        .select("task_id")
        .where("marked_at", "<=", p.markedBefore)
        .where("expires_at", "<=", p.now)
        .orderBy("marked_at")
        .limit(p.limit),
    ),
);

const mark = prepared((db, p: { now: number; limit: number }) =>
  db
    .updateTable("task")
    .set({ marked_at: p.now })
    .where("task_id", "in", (eb) =>
      eb
        .selectFrom("task")
        .select("task_id")
        .where("expires_at", "<=", p.now)
        .where("marked_at", "is", sql.lit(null))
        .orderBy("expires_at")
        .limit(p.limit),
    ),
);

export function* sweepTasks(
  context: OpContext,
  graceMs: number,
  limit: number,
): Op<{ marked: number; unmarked: number; removed: number }> {
  const { now } = context;
  const unmarked = yield* run(unmark(context, { now, limit }));
  yield* run(remark(context, { now, limit }));
  // Removing comes before marking: one call never is both looks.
  const removed = yield* run(removeRipe(context, { now, markedBefore: now - graceMs, limit }));
  const marked = yield* run(mark(context, { now, limit }));
  return { marked, unmarked, removed };
}
