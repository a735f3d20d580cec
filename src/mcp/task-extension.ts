/**
 * The tasks extension of 2026-07-28, `io.modelcontextprotocol/tasks`: for requests that declared it, and never otherwise.
 *
 * A handler's failure is a `completed` task whose result has `isError`; `failed` stands for JSON-RPC errors alone (Task Execution
 * Errors). Cancelling is acknowledged, and the state tells when the work has stopped (Task Cancellation).
 */
import {
  CLIENT_CAPABILITIES_META_KEY,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { TransferError } from "../errors.ts";
import type { Task } from "../tasks/engine.ts";
import { pollIntervalMs, tasksOf } from "./task-facts.ts";
import { elicitsForms, fromElicitResult, isObject, toElicitation } from "./task-input.ts";
import { protocolFailure, type Serve, statusMessage, taskIdParams, ttlMs } from "./task-protocol.ts";
import { finalResult } from "./task-result.ts";
import type { ToolContext } from "./tool-definition.ts";

export const tasksExtension = "io.modelcontextprotocol/tasks";

/** What the client can do, as the request's own envelope says: nothing declared before counts. */
export function declaredCapabilities({ mcpReq }: ServerContext): unknown {
  return (mcpReq.envelope as { [key: string]: unknown } | undefined)?.[CLIENT_CAPABILITIES_META_KEY];
}

export function declaresTasks(capabilities: unknown): boolean {
  const extensions = isObject(capabilities) ? capabilities.extensions : undefined;
  return isObject(extensions) && isObject(extensions[tasksExtension]);
}

/** Missing Required Client Capability, -32021. */
export function tasksNotDeclared(): MissingRequiredClientCapabilityError {
  return new MissingRequiredClientCapabilityError({
    requiredCapabilities: { extensions: { [tasksExtension]: {} } },
  });
}

/** `CreateTaskResult`: the task alone, without what it asks or gave. */
export function createTaskResult(task: Task): Result {
  return { resultType: "task", ...taskFields(task, wireStatus(task)) };
}

/** `DetailedTask`, as `tasks/get` and notifications tell it to a client with these capabilities. */
export async function detailedTask(
  task: Task,
  capabilities: unknown,
  context: ToolContext,
): Promise<{ [member: string]: unknown }> {
  const status = wireStatus(task);
  const fields = taskFields(task, status);
  switch (status) {
    case "input_required":
      return { ...fields, inputRequests: elicitsForms(capabilities) ? inputRequests(task) : {} };
    case "completed":
      // The nested result is a result of its own, which needs its type like every other.
      return { ...fields, result: { resultType: "complete", ...(await finalResult(task, context)) } };
    case "failed":
      return { ...fields, error: protocolFailure(task) };
    default:
      return fields;
  }
}

/** Answers `tasks/get`, `tasks/update` and `tasks/cancel` on a server of the modern era. */
export function serveTasksExtension(server: Server, serve: Serve): void {
  const declared: Serve = (context, work) => {
    if (!declaresTasks(declaredCapabilities(context))) throw tasksNotDeclared();
    return serve(context, work);
  };
  server.setRequestHandler("tasks/get", { params: taskIdParams }, ({ taskId }, context) =>
    declared(context, async (call) => {
      const task = await tasksOf(call).get(call.principal, taskId);
      return detailedTask(task, declaredCapabilities(context), call);
    }),
  );
  server.setRequestHandler("tasks/update", { params: taskIdParams }, ({ taskId }, context) =>
    declared(context, (call) => update(taskId, context, call)),
  );
  server.setRequestHandler("tasks/cancel", { params: taskIdParams }, ({ taskId }, context) =>
    declared(context, async (call) => {
      await tasksOf(call).cancel(call.principal, taskId);
      return {};
    }),
  );
}

/** Answers to what is not open are passed over (Task Update Requests); one that does not fit its question is the caller's fault. */
async function update(taskId: string, { mcpReq }: ServerContext, context: ToolContext): Promise<Result> {
  const { inputResponses, droppedInputResponseKeys = [] } = mcpReq;
  if (inputResponses === undefined)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, "inputResponses: It is required.");
  const tasks = tasksOf(context);
  const { principal } = context;
  const { inputRequests: open } = await tasks.get(principal, taskId);
  const faults: TransferError[] = [];
  for (const question of open) {
    const { id } = question;
    if (!Object.hasOwn(inputResponses, id) && !droppedInputResponseKeys.includes(id)) continue;
    const answer = fromElicitResult(question, inputResponses[id]);
    if (answer === null) {
      faults.push(new TransferError("invalid_param", `inputResponses.${id}: It must be an ElicitResult.`));
      continue;
    }
    try {
      await tasks.respond(principal, taskId, id, answer);
    } catch (error) {
      if (!(error instanceof TransferError)) throw error;
      // Answered by somebody else in the meantime: not open any more.
      if (error.code !== "task_not_waiting") faults.push(error);
    }
  }
  const [fault] = faults;
  if (fault !== undefined) throw fault;
  return {};
}

function inputRequests(task: Task): { [id: string]: unknown } {
  return Object.fromEntries(task.inputRequests.map((question) => [question.id, toElicitation(question)]));
}

function wireStatus(task: Task): Task["status"] {
  return task.status === "failed" && protocolFailure(task) === null ? "completed" : task.status;
}

function taskFields(task: Task, status: Task["status"]): { [member: string]: unknown } {
  const { taskId, createdAt, updatedAt } = task;
  const message = statusMessage(task);
  return {
    taskId,
    status,
    ...(message !== undefined && { statusMessage: message }),
    createdAt: createdAt.toISOString(),
    lastUpdatedAt: updatedAt.toISOString(),
    ttlMs: ttlMs(task),
    pollIntervalMs: pollIntervalMs(task),
  };
}
