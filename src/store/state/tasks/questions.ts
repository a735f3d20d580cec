/** Questions and their answers. The answer is the outcome of the step that asked. */
import type {
  AnswerOutcome,
  AnswerTask,
  AskQuestion,
  EnterOutcome,
  Lease,
} from "../../../tasks/state-store.ts";
import { first, type Op, type OpContext, oneOff, prepared, rows, run } from "../operation.ts";
import { addStep, newStep, setProgress, stepByName } from "./steps.ts";
import { toStep } from "./tables.ts";
import { currentRecord, holds, recordOf, taskById } from "./task-row.ts";

const insertQuestion = prepared(
  (
    db,
    p: {
      taskId: string;
      inputId: string;
      seq: number;
      name: string;
      prompt: string;
      choices: string | null;
      schema: string | null;
      now: number;
    },
  ) =>
    db.insertInto("question").values((eb) => ({
      task_id: p.taskId,
      input_id: p.inputId,
      seq: p.seq,
      step_name: p.name,
      prompt: p.prompt,
      choices: p.choices,
      schema: p.schema,
      asked_at: p.now,
      is_open: eb.lit(1),
    })),
);

const countQuestion = prepared((db, p: { taskId: string; now: number }) =>
  db
    .updateTable("task")
    .set((eb) => ({
      status: eb.val("input_required" as const),
      open_questions: eb("open_questions", "+", eb.lit(1)),
      version: eb("version", "+", eb.lit(1)),
      updated_at: p.now,
    }))
    .where("task_id", "=", p.taskId),
);

export function* askQuestion(context: OpContext, input: AskQuestion): Op<EnterOutcome> {
  const { now } = context;
  const { taskId, name } = input;
  const task = yield* first(taskById(context, { taskId }));
  if (!holds(task, input)) return { kind: "fenced" };
  const row = yield* first(stepByName(context, { taskId, name }));
  if (row !== null) {
    return row.kind === "input"
      ? { kind: "ok", step: toStep(row), now }
      : { kind: "other_kind", recorded: row.kind };
  }
  if (task.steps >= input.maxSteps) return { kind: "too_many" };
  const step = yield* addStep(context, newStep({ ...input, kind: "input" }, null));
  const choices = input.choices === null ? null : JSON.stringify(input.choices);
  const { inputId, prompt, schema, progress } = input;
  if (progress !== null) yield* setProgress(context, input, progress.message, progress.fraction);
  // Steps are counted and never removed, so their number orders the questions.
  yield* run(
    insertQuestion(context, { taskId, inputId, seq: task.steps, name, prompt, choices, schema, now }),
  );
  yield* run(countQuestion(context, { taskId, now }));
  return { kind: "ok", step, now };
}

const questionById = prepared((db, p: { taskId: string; inputId: string }) =>
  db
    .selectFrom("question")
    .select(["step_name", "is_open"])
    .where("task_id", "=", p.taskId)
    .where("input_id", "=", p.inputId),
);

const closeQuestion = prepared((db, p: { taskId: string; inputId: string }) =>
  db
    .updateTable("question")
    .set((eb) => ({ is_open: eb.lit(0) }))
    .where("task_id", "=", p.taskId)
    .where("input_id", "=", p.inputId),
);

const setAnswer = prepared((db, p: { taskId: string; name: string; answer: string }) =>
  db
    .updateTable("step")
    .set({ state: "done", result: p.answer })
    .where("task_id", "=", p.taskId)
    .where("name", "=", p.name),
);

const setAnswered = prepared(
  (
    db,
    p: {
      taskId: string;
      status: "working" | "input_required";
      called: number;
      readyAt: number | null;
      wakeAt: number | null;
      now: number;
    },
  ) =>
    db
      .updateTable("task")
      .set((eb) => ({
        status: p.status,
        open_questions: eb("open_questions", "-", eb.lit(1)),
        called: p.called,
        ready_at: p.readyAt,
        wake_at: p.wakeAt,
        version: eb("version", "+", eb.lit(1)),
        updated_at: p.now,
      }))
      .where("task_id", "=", p.taskId),
);

export function* answerTask(context: OpContext, input: AnswerTask): Op<AnswerOutcome> {
  const { now } = context;
  const { taskId, inputId, answer } = input;
  const task = yield* first(taskById(context, { taskId }));
  if (task === null) return { kind: "unknown" };
  const question = yield* first(questionById(context, { taskId, inputId }));
  if (question === null || (question.is_open === 1 && task.ended_at !== null)) {
    return { kind: "not_waiting", task: yield* recordOf(context, task, true), now };
  }
  const name = question.step_name;
  if (question.is_open === 0) {
    const step = yield* first(stepByName(context, { taskId, name }));
    const kind = step?.result === answer ? "ok" : "not_waiting";
    return { kind, task: yield* recordOf(context, task, true), now };
  }
  yield* run(closeQuestion(context, { taskId, inputId }));
  yield* run(setAnswer(context, { taskId, name, answer }));
  const parked = task.lease_owner === null;
  yield* run(
    setAnswered(context, {
      taskId,
      status: task.open_questions > 1 ? "input_required" : "working",
      called: parked ? 0 : 1,
      readyAt: parked ? (task.ready_at ?? now) : null,
      wakeAt: null,
      now,
    }),
  );
  return { kind: "ok", task: yield* currentRecord(context, taskId), now };
}

/** Of these steps, the questions that are answered. */
export function* answeredOf(
  context: OpContext,
  taskId: string,
  names: readonly string[],
): Op<{ name: string; answer: string }[]> {
  if (names.length === 0) return [];
  const query = context.db
    .selectFrom("step")
    .select(["name", "result"])
    .where("task_id", "=", taskId)
    .where("name", "in", names)
    .where("kind", "=", "input")
    .where("state", "=", "done");
  const found = yield* rows(oneOff(query));
  return found.map(({ name, result }) => ({ name, answer: result ?? "null" }));
}

const attended = prepared((db, p: { taskId: string; owner: string; fence: number }) =>
  db
    .updateTable("task")
    .set((eb) => ({ called: eb.lit(0) }))
    .where("task_id", "=", p.taskId)
    .where("lease_owner", "=", p.owner)
    .where("fence", "=", p.fence),
);

export function* takeAnswers(
  context: OpContext,
  lease: Lease,
  names: readonly string[],
): Op<{ name: string; answer: string }[]> {
  const { taskId, owner, fence } = lease;
  yield* run(attended(context, { taskId, owner, fence }));
  return yield* answeredOf(context, taskId, names);
}
