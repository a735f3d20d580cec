/** Records as callers are shown them, and the judgements that follow from a record alone. */
import { type ErrorBody, TransferError } from "../errors.ts";
import type { InputRequest, JsonValue, Task } from "./engine.ts";
import { isTaskId } from "./identifiers.ts";
import { parsedJson } from "./json-value.ts";
import type { QuestionRecord, TaskRecord } from "./records.ts";

export function isPast(task: TaskRecord, now: number): boolean {
  return task.expiresAt !== null && task.expiresAt <= now;
}

export function toTask(record: TaskRecord): Task {
  return {
    taskId: record.taskId,
    principal: record.principal,
    kind: record.kind,
    status: record.status,
    progress: record.progress,
    inputRequests: record.questions.map(toInputRequest),
    result: parsedJson(record.result),
    // Written by this engine as an error body.
    error: record.error === null ? null : (JSON.parse(record.error) as ErrorBody),
    cancelRequested: record.cancelRequested && record.endedAt === null,
    createdAt: new Date(record.createdAt),
    updatedAt: new Date(record.updatedAt),
    endedAt: date(record.endedAt),
    expiresAt: date(record.expiresAt),
    deadlineAt: date(record.deadlineAt),
  };
}

function toInputRequest(question: QuestionRecord): InputRequest {
  return {
    id: question.inputId,
    prompt: question.prompt,
    choices: question.choices,
    schema: question.schema === null ? null : (JSON.parse(question.schema) as JsonValue),
    askedAt: new Date(question.askedAt),
  };
}

function date(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}

export function unknownTask(): TransferError {
  return new TransferError("unknown_task", "There is no such task.");
}

export function notWaiting(record: TaskRecord): TransferError {
  const message =
    record.endedAt !== null
      ? `The task is ${record.status}: it takes no answer.`
      : record.questions.length > 0
        ? "That question is not open: it was answered otherwise, or never asked. Another one is."
        : "The task has no open question.";
  return new TransferError("task_not_waiting", message, {
    repair: { tool: "durable_task_get", arguments: { taskId: record.taskId } },
  });
}

export function formatCursor(record: TaskRecord): string {
  return Buffer.from(`${record.createdAt}.${record.taskId}`).toString("base64url");
}

export function parseCursor(cursor: string): { createdAt: number; taskId: string } {
  const [createdAt = "", taskId = ""] = Buffer.from(cursor.slice(0, 200), "base64url")
    .toString("latin1")
    .split(".");
  if (!/^\d{1,15}$/.test(createdAt) || !isTaskId(taskId)) {
    throw new TransferError("invalid_param", "That is no cursor of this list.", {
      param: "cursor",
      recoveryHint:
        "Leave cursor out to start from the beginning, or pass nextCursor of the page before exactly.",
    });
  }
  return { createdAt: Number(createdAt), taskId };
}
