/** What a handler is given, over one run: steps, questions, sleeps and files, each looked up in the records before it is done. */
import type { TransferEngine } from "../transfer/engine.ts";
import {
  type InputAnswer,
  InputRefused,
  type JsonValue,
  type NeedInput,
  type StepContext,
  type StepOptions,
  type TaskContext,
  TaskStopped,
  type WrittenFile,
} from "./engine.ts";
import { errorText, revivedError } from "./faults.ts";
import { discard, type FileContent, openFile, writeFile } from "./files.ts";
import { inputId, isStepName, nameFrom, stepKey } from "./identifiers.ts";
import { jsonText, NotJson, parsedJson } from "./json-value.ts";
import type { StepKind, StepRecord } from "./records.ts";
import type { Run } from "./run.ts";
import type { AskQuestion, EnterOutcome } from "./state-store.ts";

const maxSteps = 50_000;
const maxAttempts = 1_000;
const firstBackoffMs = 1_000;
const longestBackoffMs = 60_000;
const maxPromptLength = 10_000;
const maxChoices = 200;
const longestSleepMs = 10 * 365 * 86_400_000;

const stepWords: Readonly<Record<StepKind, string>> = {
  step: "a step",
  input: "a question",
  sleep: "a sleep",
  file: "a file",
};

interface Work {
  readonly name: string;
  readonly kind: "step" | "file";
  readonly attempts: number;
  readonly backoffMs: number;
  readonly run: (step: StepContext) => unknown;
  /** Takes back what was done where it could not be recorded. */
  readonly undo: ((value: unknown) => Promise<void>) | null;
}

export function contextOf(run: Run, transfers: TransferEngine): TaskContext {
  const counts = new Map<string, number>();
  /** The first of its name has the bare one. */
  const numbered = (name: string): string => {
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return count === 1 ? name : `${name} #${count}`;
  };
  const { principal, signal } = run;
  return {
    taskId: run.taskId,
    principal,
    signal,
    // biome-ignore lint/suspicious/noConfusingVoidType: a function without a return gives void, and is a good step
    step<T extends JsonValue | undefined | void>(
      name: string,
      fn: (step: StepContext) => Promise<T> | T,
      options: StepOptions = {},
    ) {
      const { attempts = 1, backoffMs = firstBackoffMs } = options;
      const value = inStep(run, { name, kind: "step", attempts, backoffMs, run: fn, undo: null });
      // What `fn` returned, or the copy of it that is recorded: JSON either way.
      return handled(value as Promise<T>);
    },
    async progress(message, fraction) {
      run.checkGoingOn();
      run.progress.report(message, fraction);
    },
    needInput: (question, options = {}) =>
      handled(ask(run, question, options.name ?? numbered(nameFrom("input", String(question.prompt))))),
    sleep: (ms, options = {}) => handled(sleep(run, ms, options.name ?? numbered(`sleep: ${ms}`))),
    files: {
      open: (handle) => handled(openFile(transfers, principal, handle)),
      write: (filename, content, options = {}) =>
        handled(
          store(run, transfers, options.name ?? nameFrom("file", filename), {
            filename,
            contentType: options.contentType ?? null,
            content,
          }),
        ),
    },
  };
}

/** A handler that does not wait for its call must not bring the process down when that fails. */
function handled<T>(call: Promise<T>): Promise<T> {
  call.catch(() => {});
  return call;
}

/** The record of this step, if there is one. Each name is come to once in a run, and always by the same kind of call. */
function cameTo(run: Run, name: string, kind: StepKind): StepRecord | null {
  if (!isStepName(name)) throw run.fault("A step needs a name of 1 to 512 characters.");
  if (run.used.has(name)) {
    throw run.fault(`Two steps of one run have the name '${name}': each needs its own.`);
  }
  run.used.add(name);
  const record = run.recorded.get(name) ?? null;
  if (record !== null && record.kind !== kind) throw otherKind(run, name, record.kind, kind);
  return record;
}

function otherKind(run: Run, name: string, recorded: StepKind, now: StepKind): Error {
  return run.fault(
    `The handler has changed: '${name}' was recorded as ${stepWords[recorded]}, and is ${stepWords[now]} now.`,
  );
}

/** The step as the store has recorded its entry; throws where it may not run. */
function entered(
  run: Run,
  name: string,
  kind: StepKind,
  outcome: EnterOutcome,
): { step: StepRecord; now: number } {
  switch (outcome.kind) {
    case "ok":
      return outcome;
    case "fenced":
      throw lost(run);
    case "too_many":
      throw run.fault(`A task has at most ${maxSteps} steps.`);
    case "other_kind":
      throw otherKind(run, name, outcome.recorded, kind);
    default:
      return outcome satisfies never;
  }
}

function lost(run: Run): TaskStopped {
  run.stop("lost");
  return new TaskStopped("lost");
}

async function recordedResult(run: Run, step: StepRecord): Promise<string | null> {
  if (step.leftOutLength === null) return step.result;
  return run.durably(() => run.parts.state.stepResult(run.taskId, step.name));
}

/** What a finished step gave: its result, or its error thrown. */
async function outcomeOf(run: Run, step: StepRecord): Promise<JsonValue | undefined> {
  const text = await recordedResult(run, step);
  if (step.state === "done") return parsedJson(text);
  run.noteRefusal();
  throw revivedError(text ?? "{}");
}

async function inStep(run: Run, work: Work): Promise<JsonValue | undefined> {
  run.checkGoingOn();
  const { name, kind, attempts, backoffMs } = work;
  const record = cameTo(run, name, kind);
  if (!Number.isInteger(attempts) || attempts < 1 || attempts > maxAttempts || !(backoffMs >= 0)) {
    throw run.fault(`Step '${name}' needs 1 to ${maxAttempts} attempts and a backoff of 0 ms or more.`);
  }
  if (record !== null && record.state !== "entered") return outcomeOf(run, record);
  let pauseMs = record?.dueAt == null ? 0 : record.dueAt - run.storeNow();
  for (;;) {
    if (pauseMs > 0) await run.wait(name, pauseMs);
    run.checkGoingOn();
    const attempted = await run.active(() => attempt(run, work));
    if ("value" in attempted) return attempted.value;
    pauseMs = attempted.pauseMs;
  }
}

async function attempt(
  run: Run,
  work: Work,
): Promise<{ value: JsonValue | undefined } | { pauseMs: number }> {
  const { state } = run.parts;
  const { name, kind } = work;
  const enter = { ...run.lease, name, kind, dueInMs: null, maxSteps };
  const { step } = entered(run, name, kind, await run.durably(() => state.enterStep(enter)));
  if (step.state !== "entered") return { value: await outcomeOf(run, step) };
  let value: unknown;
  let text: string | null;
  try {
    value = await work.run({ key: stepKey(run.taskId, name), signal: run.signal, attempt: step.entries });
    text = jsonText(value, `The result of step '${name}'`);
  } catch (error) {
    if (error instanceof NotJson) throw run.fault(error.message);
    // What fails while the run is stopped fails because of it, and has not failed.
    run.checkGoingOn();
    const pauseMs = Math.min(longestBackoffMs, work.backoffMs * 2 ** step.failures);
    const again = step.failures + 1 < work.attempts;
    const end = again
      ? { state: "again" as const, inMs: Math.ceil(pauseMs) }
      : { state: "failed" as const, error: errorText(error) };
    const recorded = await run.durably(() => state.endStep({ ...run.lease, name, end }));
    if (recorded.kind === "fenced") throw lost(run);
    if (again) return { pauseMs };
    run.noteRefusal();
    throw error;
  }
  const end = { state: "done" as const, result: text };
  const recorded = await run.durably(() => state.endStep({ ...run.lease, name, end }));
  if (recorded.kind === "fenced") {
    await work.undo?.(value).catch(() => {});
    throw lost(run);
  }
  run.checkGoingOn();
  return { value: parsedJson(text) };
}

async function sleep(run: Run, ms: number, name: string): Promise<void> {
  run.checkGoingOn();
  const record = cameTo(run, name, "sleep");
  if (!(ms >= 0 && ms <= longestSleepMs))
    throw run.fault(`A sleep has 0 to ${longestSleepMs} ms, and not ${ms}.`);
  let leftMs: number;
  if (record !== null) leftMs = (record.dueAt ?? 0) - run.storeNow();
  else {
    const enter = { ...run.lease, name, kind: "sleep" as const, dueInMs: Math.ceil(ms), maxSteps };
    const outcome = await run.active(() => run.durably(() => run.parts.state.enterStep(enter)));
    const { step, now } = entered(run, name, "sleep", outcome);
    leftMs = (step.dueAt ?? 0) - now;
  }
  run.checkGoingOn();
  if (leftMs > 0) await run.wait(name, leftMs);
}

async function ask(run: Run, question: NeedInput, name: string): Promise<JsonValue> {
  run.checkGoingOn();
  const record = cameTo(run, name, "input");
  if (record?.state === "done") return answered(run, (await recordedResult(run, record)) ?? "null");
  const { prompt, choices, schema } = askable(run, question);
  // It begins before the question can be answered, so that no answer comes too early.
  const waiting = run.waits.begin(name, null);
  waiting.catch(() => {});
  if (record !== null) void run.attend();
  else {
    const asked = {
      ...run.lease,
      name,
      inputId: inputId(run.taskId, name),
      prompt,
      choices,
      schema,
      maxSteps,
    };
    const outcome = await run.active(() => run.durably(() => askWithProgress(run, asked)));
    const { step } = entered(run, name, "input", outcome);
    if (step.state === "done") run.waits.settle(name, step.result ?? "null");
    else run.parts.onChanged(run.taskId);
  }
  return answered(run, await run.awaited(waiting));
}

/** Who reads the question sees the progress that led to it, even where the process is killed next. */
async function askWithProgress(run: Run, asked: Omit<AskQuestion, "progress">): Promise<EnterOutcome> {
  const progress = run.progress.newest;
  const outcome = await run.parts.state.askQuestion({ ...asked, progress });
  run.progress.noteWritten(progress);
  return outcome;
}

function askable(run: Run, { prompt, choices, schema }: NeedInput) {
  if (typeof prompt !== "string" || prompt === "" || prompt.length > maxPromptLength) {
    throw run.fault(`A question has a prompt of 1 to ${maxPromptLength} characters.`);
  }
  if (choices !== undefined) {
    const fit =
      choices.length > 0 && choices.length <= maxChoices && choices.every((one) => typeof one === "string");
    if (!fit || new Set(choices).size !== choices.length) {
      throw run.fault(`The choices of a question are 1 to ${maxChoices} different strings.`);
    }
  }
  if (schema !== undefined && (typeof schema !== "object" || schema === null || Array.isArray(schema))) {
    throw run.fault("The schema of a question is a JSON Schema object.");
  }
  try {
    return { prompt, choices: choices ?? null, schema: jsonText(schema, "The schema of a question") };
  } catch (error) {
    throw error instanceof NotJson ? run.fault(error.message) : error;
  }
}

function answered(run: Run, text: string): JsonValue {
  // Written by `checkedAnswer`.
  const answer = JSON.parse(text) as InputAnswer;
  if (answer.action === "accept") return answer.value;
  run.noteRefusal();
  throw new InputRefused(answer.action);
}

async function store(
  run: Run,
  transfers: TransferEngine,
  name: string,
  file: { readonly filename: string; readonly contentType: string | null; readonly content: FileContent },
): Promise<WrittenFile> {
  const { principal } = run;
  let taken = false;
  try {
    const written = await inStep(run, {
      name,
      kind: "file",
      attempts: 1,
      backoffMs: 0,
      run: ({ key, attempt: entries, signal }) => {
        taken = true;
        return writeFile({ transfers, principal, key, entries, signal }, file);
      },
      undo: async (value) => transfers.removeOwn(principal, (value as WrittenFile).handle),
    });
    // A file step's result is what `writeFile` returned, now or in an earlier run.
    return written as WrittenFile;
  } finally {
    if (!taken) discard(file.content);
  }
}
