/** How a task comes to be: once for each idempotency key, and claimed in the same transaction where its maker runs it. */
import type { CreateTaskOutcome, NewTask } from "../../../tasks/state-store.ts";
import { first, type Op, type OpContext, prepared, run } from "../operation.ts";
import { heartbeat } from "../transfers/processes.ts";
import { type TaskTable, toTask } from "./tables.ts";
import { recordOf, taskById } from "./task-row.ts";

const keyedTask = prepared((db, p: { principal: string; kind: string; key: string }) =>
  db
    .selectFrom("task_key")
    .select(["arguments_hash", "task_id"])
    .where("principal", "=", p.principal)
    .where("kind", "=", p.kind)
    .where("key", "=", p.key),
);

/** A key whose task is past its time has ended with it, and is taken over by the new task. */
const upsertKey = prepared(
  (db, p: { principal: string; kind: string; key: string; argumentsHash: string; taskId: string }) =>
    db
      .insertInto("task_key")
      .values({
        principal: p.principal,
        kind: p.kind,
        key: p.key,
        arguments_hash: p.argumentsHash,
        task_id: p.taskId,
      })
      .onConflict((conflict) =>
        conflict.columns(["principal", "kind", "key"]).doUpdateSet((eb) => ({
          arguments_hash: eb.ref("excluded.arguments_hash"),
          task_id: eb.ref("excluded.task_id"),
        })),
      ),
);

const insertTask = prepared((db, p: TaskTable) =>
  db
    .insertInto("task")
    .values({
      task_id: p.task_id,
      principal: p.principal,
      kind: p.kind,
      status: p.status,
      progress_message: p.progress_message,
      progress_fraction: p.progress_fraction,
      error: p.error,
      cancel_requested: p.cancel_requested,
      lease_owner: p.lease_owner,
      fence: p.fence,
      called: p.called,
      ready_at: p.ready_at,
      wake_at: p.wake_at,
      ran_before: p.ran_before,
      steps: p.steps,
      open_questions: p.open_questions,
      crashes: p.crashes,
      version: p.version,
      created_at: p.created_at,
      updated_at: p.updated_at,
      ended_at: p.ended_at,
      expires_at: p.expires_at,
      deadline_at: p.deadline_at,
      ttl_ms: p.ttl_ms,
      marked_at: p.marked_at,
    })
    .onConflict((conflict) => conflict.column("task_id").doNothing()),
);

const insertPayload = prepared((db, p: { taskId: string; args: string }) =>
  db.insertInto("task_payload").values((eb) => ({ task_id: p.taskId, args: p.args, result: eb.lit(null) })),
);

const isPast = (row: Pick<TaskTable, "expires_at">, now: number): boolean =>
  row.expires_at !== null && row.expires_at <= now;

export function* createTask(context: OpContext, input: NewTask): Op<CreateTaskOutcome> {
  const { now } = context;
  const { taskId, principal, kind, idempotency, owner } = input;
  if (idempotency !== null) {
    const known = yield* first(keyedTask(context, { principal, kind, key: idempotency.key }));
    const row = known && (yield* first(taskById(context, { taskId: known.task_id })));
    if (known !== null && row !== null && !isPast(row, now)) {
      if (known.arguments_hash !== idempotency.argumentsHash) return { kind: "conflict" };
      return { kind: "existing", task: yield* recordOf(context, row, true), now };
    }
  }
  const row: TaskTable = {
    task_id: taskId,
    principal,
    kind,
    status: "working",
    progress_message: null,
    progress_fraction: null,
    error: null,
    cancel_requested: 0,
    lease_owner: owner,
    fence: owner === null ? 0 : 1,
    called: 0,
    ready_at: owner === null ? now : null,
    wake_at: null,
    ran_before: owner === null ? 0 : 1,
    steps: 0,
    open_questions: 0,
    crashes: 0,
    version: 1,
    created_at: now,
    updated_at: now,
    ended_at: null,
    expires_at: null,
    deadline_at: input.deadlineMs === null ? null : now + input.deadlineMs,
    ttl_ms: input.ttlMs,
    marked_at: null,
  };
  if ((yield* run(insertTask(context, row))) === 0) return { kind: "taken" };
  yield* run(insertPayload(context, { taskId, args: input.args }));
  if (idempotency !== null) yield* run(upsertKey(context, { principal, kind, taskId, ...idempotency }));
  if (owner !== null) yield* heartbeat(context, owner);
  return { kind: "created", task: toTask(row, [], null), now };
}
