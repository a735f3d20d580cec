/** The steps of a task: entered before they run, ended with what they gave. Nobody watches them, so they wake nobody. */
import type { StepRecord } from "../../../tasks/records.ts";
import type { EndStep, EnterOutcome, EnterStep, Lease } from "../../../tasks/state-store.ts";
import { first, type Op, type OpContext, prepared, rows, run } from "../operation.ts";
import { type StepTable, toStep } from "./tables.ts";
import { holds, taskById } from "./task-row.ts";

/** Longer results are read one by one, so that taking up a task with many of them needs no more memory than one. */
const inlineLength = 1_024;

export const stepByName = prepared((db, p: { taskId: string; name: string }) =>
  db.selectFrom("step").selectAll().where("task_id", "=", p.taskId).where("name", "=", p.name),
);

const insertStep = prepared((db, p: StepTable) =>
  db.insertInto("step").values({
    task_id: p.task_id,
    name: p.name,
    kind: p.kind,
    state: p.state,
    entries: p.entries,
    failures: p.failures,
    due_at: p.due_at,
    result: p.result,
  }),
);

const countStep = prepared((db, p: { taskId: string }) =>
  db
    .updateTable("task")
    .set((eb) => ({ steps: eb("steps", "+", eb.lit(1)) }))
    .where("task_id", "=", p.taskId),
);

const enterAgain = prepared((db, p: { taskId: string; name: string }) =>
  db
    .updateTable("step")
    .set((eb) => ({ entries: eb("entries", "+", eb.lit(1)), due_at: eb.lit(null) }))
    .where("task_id", "=", p.taskId)
    .where("name", "=", p.name),
);

const setEnd = prepared(
  (db, p: Pick<StepTable, "task_id" | "name" | "state" | "failures" | "due_at" | "result">) =>
    db
      .updateTable("step")
      .set({ state: p.state, failures: p.failures, due_at: p.due_at, result: p.result })
      .where("task_id", "=", p.task_id)
      .where("name", "=", p.name),
);

const forgetCrashes = prepared((db, p: { taskId: string }) =>
  db
    .updateTable("task")
    .set((eb) => ({ crashes: eb.lit(0) }))
    .where("task_id", "=", p.taskId),
);

const pageOfSteps = prepared((db, p: { taskId: string; afterName: string; limit: number }) =>
  db
    .selectFrom("step")
    .select(["task_id", "name", "kind", "state", "entries", "failures", "due_at"])
    .select((eb) => eb.fn<number | null>("length", ["result"]).as("result_length"))
    .select((eb) =>
      eb
        .case()
        .when(eb.fn<number>("length", ["result"]), "<=", eb.lit(inlineLength))
        .then(eb.ref("result"))
        .end()
        .as("result"),
    )
    .where("task_id", "=", p.taskId)
    .where("name", ">", p.afterName)
    .orderBy("name")
    .limit(p.limit),
);

export function* recordedSteps(
  context: OpContext,
  taskId: string,
  afterName: string,
  limit: number,
): Op<StepRecord[]> {
  const found = yield* rows(pageOfSteps(context, { taskId, afterName, limit }));
  return found.map((row) => ({
    ...toStep({ ...row, result: row.result ?? null }),
    leftOutLength: row.result === null ? row.result_length : null,
  }));
}

export function* stepResult(context: OpContext, taskId: string, name: string): Op<string | null> {
  return (yield* first(stepByName(context, { taskId, name })))?.result ?? null;
}

/** A new step of a task that the caller holds. */
export function* addStep(context: OpContext, row: StepTable): Op<StepRecord> {
  yield* run(insertStep(context, row));
  yield* run(countStep(context, { taskId: row.task_id }));
  return toStep(row);
}

export const newStep = (
  input: Lease & Pick<EnterStep, "name" | "kind">,
  dueAt: number | null,
): StepTable => ({
  task_id: input.taskId,
  name: input.name,
  kind: input.kind,
  state: "entered",
  entries: 1,
  failures: 0,
  due_at: dueAt,
  result: null,
});

export function* enterStep(context: OpContext, input: EnterStep): Op<EnterOutcome> {
  const { now } = context;
  const { taskId, name, kind, dueInMs } = input;
  const task = yield* first(taskById(context, { taskId }));
  if (!holds(task, input)) return { kind: "fenced" };
  const row = yield* first(stepByName(context, { taskId, name }));
  if (row === null) {
    if (task.steps >= input.maxSteps) return { kind: "too_many" };
    const step = yield* addStep(context, newStep(input, dueInMs === null ? null : now + dueInMs));
    return { kind: "ok", step, now };
  }
  if (row.kind !== kind) return { kind: "other_kind", recorded: row.kind };
  // A sleep is one however often it is come to, and what has its outcome is not entered any more.
  if (row.state !== "entered" || kind === "sleep") return { kind: "ok", step: toStep(row), now };
  yield* run(enterAgain(context, { taskId, name }));
  return { kind: "ok", step: toStep({ ...row, entries: row.entries + 1, due_at: null }), now };
}

export function* endStep(
  context: OpContext,
  input: EndStep,
): Op<{ kind: "ok"; now: number } | { kind: "fenced" }> {
  const { now } = context;
  const { taskId, name, end } = input;
  const task = yield* first(taskById(context, { taskId }));
  if (!holds(task, input)) return { kind: "fenced" };
  const row = yield* first(stepByName(context, { taskId, name }));
  if (row === null) throw new Error(`Step ${name} of ${taskId} has not been entered`);
  // Recorded by this holder before, whose answer was lost.
  if (row.state !== "entered") return { kind: "ok", now };
  const failures = end.state === "done" ? row.failures : row.failures + 1;
  yield* run(
    setEnd(context, {
      task_id: taskId,
      name,
      state: end.state === "again" ? "entered" : end.state,
      failures,
      due_at: end.state === "again" ? now + end.inMs : null,
      result: end.state === "done" ? end.result : end.state === "failed" ? end.error : null,
    }),
  );
  if (task.crashes > 0) yield* run(forgetCrashes(context, { taskId }));
  return { kind: "ok", now };
}

const progress = prepared(
  (
    db,
    p: {
      taskId: string;
      owner: string;
      fence: number;
      message: string;
      fraction: number | null;
      now: number;
    },
  ) =>
    db
      .updateTable("task")
      .set((eb) => ({
        progress_message: p.message,
        progress_fraction: p.fraction,
        updated_at: p.now,
        version: eb("version", "+", eb.lit(1)),
      }))
      .where("task_id", "=", p.taskId)
      .where("lease_owner", "=", p.owner)
      .where("fence", "=", p.fence)
      .where("ended_at", "is", (eb) => eb.lit(null)),
);

export function* setProgress(
  context: OpContext,
  lease: Lease,
  message: string,
  fraction: number | null,
): Op<boolean> {
  const { taskId, owner, fence } = lease;
  const values = { taskId, owner, fence, message, fraction, now: context.now };
  return (yield* run(progress(context, values))) > 0;
}
