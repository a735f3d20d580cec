/** How the tools tell of a task: the facts that stand in every result about one, and what to do next in each state. */
import type { InputRequest, Task, TaskEngine, TaskStatus } from "../tasks/engine.ts";
import type { ToolContext } from "./tool-definition.ts";

/** Facts that every face tells, without the result, which may be too long and is `task-result.ts`'s. */
export interface TaskFacts {
  readonly taskId: string;
  readonly kind: string;
  readonly status: TaskStatus;
  readonly progress?: { readonly message: string; readonly fraction?: number };
  readonly inputRequest?: QuestionFacts;
  readonly error?: Task["error"];
  readonly cancelRequested?: true;
  readonly pollIntervalMs: number;
  readonly createdAt: string;
  readonly expiresAt?: string;
}

interface QuestionFacts {
  readonly id: string;
  readonly prompt: string;
  readonly choices?: readonly string[];
  readonly schema?: unknown;
}

/** @throws Error where the server was built without tasks: its tools are not listed then. */
export function tasksOf({ tasks }: ToolContext): TaskEngine {
  if (tasks === undefined) throw new Error("a task tool was called on a server without tasks");
  return tasks;
}

export function taskFacts(task: Task): TaskFacts {
  const { taskId, kind, status, progress, error, cancelRequested, createdAt, expiresAt } = task;
  const [question] = task.inputRequests;
  return {
    taskId,
    kind,
    status,
    ...(progress !== null && {
      progress: {
        message: progress.message,
        ...(progress.fraction !== null && { fraction: progress.fraction }),
      },
    }),
    ...(question !== undefined && { inputRequest: questionFacts(question) }),
    ...(error !== null && { error }),
    ...(cancelRequested && { cancelRequested }),
    pollIntervalMs: pollIntervalMs(task),
    createdAt: createdAt.toISOString(),
    ...(expiresAt !== null && { expiresAt: expiresAt.toISOString() }),
  };
}

/** A longer prompt would leave no room for the rest; who elicits gets all of it. */
const maxPromptLength = 4_000;

function questionFacts({ id, prompt, choices, schema }: InputRequest): QuestionFacts {
  const shown =
    prompt.length <= maxPromptLength ? prompt : `${prompt.slice(0, maxPromptLength - 1)}…`.toWellFormed();
  return { id, prompt: shown, ...(choices !== null && { choices }), ...(schema !== null && { schema }) };
}

const shortestPollMs = 500;
const longestPollMs = 5_000;

/** A tenth of the task's age, in whole tenths of a second: what has run long is not over a moment later. */
export function pollIntervalMs({ createdAt, endedAt }: Task): number {
  if (endedAt !== null) return shortestPollMs;
  const tenth = Math.round((Date.now() - createdAt.getTime()) / 1_000) * 100;
  return Math.min(longestPollMs, Math.max(shortestPollMs, tenth));
}

/** Ended, or only the caller can bring it on: there is nothing to wait for. */
export function isAtRest(task: Task): boolean {
  return task.endedAt !== null || (task.status === "input_required" && !task.cancelRequested);
}

/** What to do about a task; a sentence to follow literally. */
export function nextStepForTask(task: Task): string {
  const { taskId, status } = task;
  const wait = `call durable_task_get with taskId "${taskId}" and waitMs 40000`;
  if (task.cancelRequested) return `The task is being cancelled: ${wait} until status is "cancelled".`;
  switch (status) {
    case "working":
      return `The work goes on by itself: ${wait}, again and again until status is "completed", "failed", "cancelled" or "input_required".`;
    case "input_required":
      return `The task waits for an answer to inputRequest.prompt; ask the user where only they can know it. ${howToRespond(task)}`;
    case "completed":
      return howToUse(task);
    case "failed":
      return `The task failed, as error tells. ${task.error?.recoveryHint ?? "Start the task again."}`;
    case "cancelled":
      return "The task was cancelled; nothing is left to do.";
  }
}

/** The call that answers the oldest open question. */
export function howToRespond({ taskId, inputRequests }: Task): string {
  const [question] = inputRequests;
  const input = question === undefined ? "" : `, inputId "${question.id}"`;
  return `Call durable_task_respond with taskId "${taskId}"${input} and response ${responseForm(question)}.`;
}

function responseForm(question: InputRequest | undefined): string {
  if (question !== undefined && question.schema !== null)
    return "the JSON of an object that fits inputRequest.schema";
  return question !== undefined && question.choices !== null
    ? "exactly one of inputRequest.choices"
    : "the answer as text";
}

function howToUse({ result, expiresAt }: Task): string {
  const until = expiresAt === null ? "" : ` It is kept until ${expiresAt.toISOString()}.`;
  const handle = handleIn(result);
  const use =
    handle === null
      ? " A handle in it works with file_download and file_read."
      : ` Call file_download with handle "${handle}" for a URL, or file_read to look into it.`;
  return result === undefined
    ? `The task is done; it has no result.${until}`
    : `The task is done: use result.${use}${until}`;
}

function handleIn(result: Task["result"]): string | null {
  if (typeof result !== "object" || result === null || !("handle" in result)) return null;
  return typeof result.handle === "string" ? result.handle : null;
}
