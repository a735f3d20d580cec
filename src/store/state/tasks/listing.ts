/** Finding and listing tasks. */
import { sql } from "kysely";
import type { TaskStatus } from "../../../tasks/engine.ts";
import type { TaskRecord } from "../../../tasks/records.ts";
import type { TaskListQuery } from "../../../tasks/state-store.ts";
import { first, type Op, type OpContext, oneOff, prepared, rows } from "../operation.ts";
import type { TaskTable } from "./tables.ts";
import { recordOf, taskById } from "./task-row.ts";

/** Ids in one call: bounds the length of a statement. */
const maxIds = 500;

export function* findTask(context: OpContext, taskId: string): Op<{ task: TaskRecord; now: number } | null> {
  const row = yield* first(taskById(context, { taskId }));
  return row && { task: yield* recordOf(context, row, true), now: context.now };
}

interface PageValues {
  readonly principal: string;
  readonly status: string;
  readonly now: number;
  readonly createdAt: number;
  readonly taskId: string;
  readonly limit: number;
}

const pageOfStatus = prepared((db, p: PageValues) =>
  db
    .selectFrom("task")
    .selectAll()
    .where("principal", "=", p.principal)
    .where("status", "=", sql<TaskStatus>`${p.status}`)
    .where((eb) => eb.or([eb("expires_at", "is", sql.lit(null)), eb("expires_at", ">", p.now)]))
    .where((eb) => eb(eb.refTuple("created_at", "task_id"), ">", eb.tuple(p.createdAt, p.taskId)))
    .orderBy("created_at")
    .orderBy("task_id")
    .limit(p.limit),
);

const everyStatus: readonly TaskStatus[] = ["working", "input_required", "completed", "failed", "cancelled"];

export function* listTasks(
  context: OpContext,
  query: TaskListQuery,
): Op<{ tasks: TaskRecord[]; now: number }> {
  const { now } = context;
  const { principal, limit, after } = query;
  const values = { principal, now, limit, createdAt: after?.createdAt ?? -1, taskId: after?.taskId ?? "" };
  // One index serves both: the unfiltered list is the first rows of each status, merged.
  const found: TaskTable[] = [];
  for (const status of query.status === null ? everyStatus : [query.status]) {
    found.push(...(yield* rows(pageOfStatus(context, { ...values, status }))));
  }
  found.sort((a, b) => a.created_at - b.created_at || (a.task_id < b.task_id ? -1 : 1));
  const tasks: TaskRecord[] = [];
  for (const row of found.slice(0, limit)) tasks.push(yield* recordOf(context, row, false));
  return { tasks, now };
}

export function* taskVersions(
  context: OpContext,
  taskIds: readonly string[],
): Op<{ taskId: string; version: number }[]> {
  if (taskIds.length > maxIds) throw new RangeError(`At most ${maxIds} ids in a call, got ${taskIds.length}`);
  if (taskIds.length === 0) return [];
  const query = context.db
    .selectFrom("task")
    .select(["task_id as taskId", "version"])
    .where("task_id", "in", taskIds);
  return [...(yield* rows(oneOff(query)))];
}
