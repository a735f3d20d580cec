/**
 * Core tasks of 2025-11-25 (basic/utilities/tasks): `params.task` on a tool that says `execution.taskSupport`, and `tasks/get`,
 * `tasks/result`, `tasks/list` and `tasks/cancel`.
 *
 * An accepted cancel shows `cancelled` at once and for good, as Task Cancellation demands, though the work may still be stopping.
 * A question becomes `elicitation/create`, tied to the `tasks/result` that waits for it (Input Required Status).
 */
import {
  ProtocolError,
  ProtocolErrorCode,
  RELATED_TASK_META_KEY,
  type Result,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import * as z from "zod";
import type { Task } from "../tasks/engine.ts";
import type { TaskQuestions } from "./task-elicitation.ts";
import { pollIntervalMs, tasksOf } from "./task-facts.ts";
import { protocolFailure, type Serve, statusMessage, taskIdParams, ttlMs } from "./task-protocol.ts";
import { finalResult } from "./task-result.ts";
import { waitForTask } from "./task-wait.ts";
import type { ToolContext } from "./tool-definition.ts";

export interface CoreTasksOptions {
  /** Only where callers are kept apart: with everybody the same principal, a list would show each the tasks of all. */
  readonly list: boolean;
  /** How long `tasks/result` blocks. */
  readonly resultWaitMs: number;
  /** Puts questions to the client; null where the transport carries no requests to it. */
  readonly questions: TaskQuestions | null;
}

const listLimit = 30;

/** `capabilities.tasks` (Server Capabilities). */
export function coreTasksCapability({ list }: { list: boolean }): { [feature: string]: object } {
  return { ...(list && { list: {} }), cancel: {}, requests: { tools: { call: {} } } };
}

/** `CreateTaskResult`. */
export function createCoreTaskResult(task: Task): Result {
  return { task: coreTask(task) };
}

/** Answers `tasks/*` on a server of the 2025 era. */
export function serveCoreTasks(server: Server, serve: Serve, options: CoreTasksOptions): void {
  server.setRequestHandler("tasks/get", { params: taskIdParams }, ({ taskId }, context) =>
    serve(context, async (call) => coreTask(await tasksOf(call).get(call.principal, taskId))),
  );
  server.setRequestHandler("tasks/result", { params: taskIdParams }, ({ taskId }, context) =>
    serve(context, (call) => taskResult(taskId, context, call, options)),
  );
  server.setRequestHandler("tasks/cancel", { params: taskIdParams }, ({ taskId }, context) =>
    serve(context, (call) => cancel(taskId, call)),
  );
  if (!options.list) return;
  server.setRequestHandler("tasks/list", { params: listParams }, ({ cursor }, context) =>
    serve(context, async (call) => {
      const query = { status: null, limit: listLimit, cursor: cursor ?? null };
      const { tasks, nextCursor } = await tasksOf(call).list(call.principal, query);
      return { tasks: tasks.map(coreTask), ...(nextCursor !== null && { nextCursor }) };
    }),
  );
}

const listParams = z.looseObject({ cursor: z.string().optional() }).optional().default({});

/** Blocks until the end (Result Retrieval), but not for ever: a client that hears nothing gives up, and does not know what to do next. */
async function taskResult(
  taskId: string,
  context: ServerContext,
  call: ToolContext,
  { resultWaitMs, questions }: CoreTasksOptions,
): Promise<Result> {
  const asking = questions?.during(context, call);
  try {
    const task = await waitForTask(taskId, call, resultWaitMs, hasEnded, (seen) => asking?.see(seen));
    if (!hasEnded(task)) throw stillRunning(task);
    const failure = protocolFailure(task);
    if (failure !== null) throw new ProtocolError(failure.code, failure.message, failure.data);
    // What a cancelled task is yet to leave behind is nobody's business any more.
    const shown: Task = task.cancelRequested
      ? { ...task, status: "cancelled", cancelRequested: false }
      : task;
    const result = await finalResult(shown, call);
    return { ...result, content: [...result.content], _meta: { [RELATED_TASK_META_KEY]: { taskId } } };
  } finally {
    asking?.end();
  }
}

function stillRunning(task: Task): ProtocolError {
  return new ProtocolError(
    ProtocolErrorCode.InternalError,
    `The task is still ${task.status}: it goes on, and its result is kept. Ask for tasks/result again.`,
    { taskId: task.taskId, status: task.status, retryable: true },
  );
}

/** A task that has ended cannot be cancelled: invalid params (Task Cancellation). */
async function cancel(taskId: string, call: ToolContext): Promise<Result> {
  const tasks = tasksOf(call);
  const before = await tasks.get(call.principal, taskId);
  if (hasEnded(before)) {
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      `Cannot cancel task: already in terminal status '${coreStatus(before)}'`,
    );
  }
  return coreTask(await tasks.cancel(call.principal, taskId));
}

function hasEnded(task: Task): boolean {
  return task.endedAt !== null || task.cancelRequested;
}

function coreStatus({ status, cancelRequested }: Task): Task["status"] {
  return cancelRequested ? "cancelled" : status;
}

function coreTask(task: Task): { [member: string]: unknown } {
  const { taskId, createdAt, updatedAt } = task;
  const message = statusMessage(task);
  return {
    taskId,
    status: coreStatus(task),
    ...(message !== undefined && { statusMessage: message }),
    createdAt: createdAt.toISOString(),
    lastUpdatedAt: updatedAt.toISOString(),
    ttl: ttlMs(task),
    pollInterval: pollIntervalMs(task),
  };
}
