/** The one row of a task: how it is found, who holds it, and how it ends. */
import type { TaskRecord } from "../../../tasks/records.ts";
import type { FinishStatus, Lease } from "../../../tasks/state-store.ts";
import { first, type Op, type OpContext, prepared, rows, run } from "../operation.ts";
import { type TaskTable, toQuestion, toTask } from "./tables.ts";

export const taskById = prepared((db, p: { taskId: string }) =>
  db.selectFrom("task").selectAll().where("task_id", "=", p.taskId),
);

const openQuestions = prepared((db, p: { taskId: string }) =>
  db
    .selectFrom("question")
    .selectAll()
    .where("task_id", "=", p.taskId)
    .where("is_open", "=", (eb) => eb.lit(1))
    .orderBy("seq"),
);

const resultOf = prepared((db, p: { taskId: string }) =>
  db.selectFrom("task_payload").select("result").where("task_id", "=", p.taskId),
);

/** The record of a row, with its open questions; with its result where it is asked for. */
export function* recordOf(context: OpContext, row: TaskTable, withResult: boolean): Op<TaskRecord> {
  const taskId = row.task_id;
  const open =
    row.open_questions > 0 && row.ended_at === null ? yield* rows(openQuestions(context, { taskId })) : [];
  const payload =
    withResult && row.status === "completed" ? yield* first(resultOf(context, { taskId })) : null;
  return toTask(row, open.map(toQuestion), payload?.result ?? null);
}

/** The record as it is now; the row must be there. */
export function* currentRecord(context: OpContext, taskId: string): Op<TaskRecord> {
  const row = yield* first(taskById(context, { taskId }));
  if (row === null) throw new Error(`There is no task ${taskId}`);
  return yield* recordOf(context, row, true);
}

export const holds = (row: TaskTable | null, lease: Lease): row is TaskTable =>
  row !== null && row.lease_owner === lease.owner && row.fence === lease.fence && row.ended_at === null;

const setEnd = prepared(
  (db, p: { taskId: string; status: FinishStatus; error: string | null; now: number; expiresAt: number }) =>
    db
      .updateTable("task")
      .set((eb) => ({
        status: p.status,
        error: p.error,
        lease_owner: eb.lit(null),
        fence: eb("fence", "+", eb.lit(1)),
        called: eb.lit(0),
        ready_at: eb.lit(null),
        wake_at: eb.lit(null),
        version: eb("version", "+", eb.lit(1)),
        updated_at: p.now,
        ended_at: p.now,
        expires_at: p.expiresAt,
      }))
      .where("task_id", "=", p.taskId),
);

const setResult = prepared((db, p: { taskId: string; result: string }) =>
  db.updateTable("task_payload").set({ result: p.result }).where("task_id", "=", p.taskId),
);

/** Ends a task that has not ended. */
export function* endTask(
  context: OpContext,
  row: TaskTable,
  end: { readonly status: FinishStatus; readonly result: string | null; readonly error: string | null },
): Op<void> {
  const { now } = context;
  const { task_id: taskId, ttl_ms: ttlMs } = row;
  const { status, result, error } = end;
  yield* run(setEnd(context, { taskId, status, error, now, expiresAt: now + ttlMs }));
  if (result !== null) yield* run(setResult(context, { taskId, result }));
}
