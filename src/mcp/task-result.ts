/**
 * Results about tasks: what `durable_task_get` answers, what a tool that starts a task answers at once, and the final `CallToolResult`
 * of both protocol faces. One shape for all of them, and none longer than a conversation can carry: a result that is too long becomes
 * a stored file, named in its place.
 */
import { Readable } from "node:stream";
import { asTransferError, TransferError } from "../errors.ts";
import type { JsonValue, Task } from "../tasks/engine.ts";
import { type ToolResult, toResult } from "./call-tool.ts";
import { nextStepForTask, type TaskFacts, taskFacts } from "./task-facts.ts";
import type { ToolContext } from "./tool-definition.ts";

/** Of UTF-8: about 5,000 tokens of prose, 8,000 of digests and handles. */
const maxResultBytes = 16_000;
const previewLength = 400;

export interface RenderedTask extends TaskFacts {
  readonly result?: JsonValue;
  readonly nextStep: string;
  readonly [fact: string]: unknown;
}

/** The facts of a task with its result, or with where the result is. */
export async function renderTask(task: Task, context: ToolContext): Promise<RenderedTask> {
  const facts = taskFacts(task);
  const nextStep = nextStepForTask(task);
  if (task.result === undefined) return { ...facts, nextStep };
  const json = Buffer.from(JSON.stringify(task.result));
  if (json.length <= maxResultBytes) return { ...facts, result: task.result, nextStep };
  return { ...facts, ...(await leftOut(task, json, context)) };
}

/** The final result of the tool call that started the task: what the caller would have got, had it waited. */
export async function finalResult(task: Task, context: ToolContext): Promise<ToolResult> {
  const result = toResult(await renderTask(task, context));
  return task.status === "completed" ? result : { ...result, isError: true };
}

/** The facts in place of a result that is too long. Its member `leftOut` fits every schema of results, all of which are open. */
async function leftOut(
  task: Task,
  json: Buffer<ArrayBuffer>,
  context: ToolContext,
): Promise<{ result: JsonValue; nextStep: string }> {
  const known = { sizeBytes: json.length, preview: `${json.toString("utf8", 0, previewLength)}…` };
  try {
    const handle = await storedResult(task.taskId, json, context);
    return {
      result: { leftOut: { ...known, handle } },
      nextStep: `The task is done. Its result has ${json.length} bytes of JSON, too many for this answer, and is stored as a file: call file_read with handle "${handle}" to look into it, or file_download for a URL.`,
    };
  } catch (thrown) {
    const error = asTransferError(thrown);
    if (error.code === "internal_error") throw error;
    return {
      result: { leftOut: known },
      nextStep: `The task is done. Its result has ${json.length} bytes of JSON, too many for this answer, and cannot be stored as a file now: ${error.message} ${error.recoveryHint} Then call durable_task_get with taskId "${task.taskId}" again.`,
    };
  }
}

/** Handle of the file with this result; the same one each time, as long as it is there. */
async function storedResult(
  taskId: string,
  json: Buffer<ArrayBuffer>,
  { engine, principal }: ToolContext,
): Promise<string> {
  const { transfer } = await engine.create(principal, {
    filename: `${taskId}.json`,
    contentType: "application/json",
    metadata: null,
    sizeBytes: json.length,
    sha256: null,
    idempotencyKey: `durable_task_get ${taskId}`,
  });
  const { handle, offset, status } = transfer;
  if (status === "receiving" && offset < json.length) {
    const rest = json.subarray(offset);
    const body = { stream: Readable.from([rest]), lengthBytes: rest.length };
    await engine.appendTo(principal, handle, { offset, body }).catch(async (error: unknown) => {
      // Another call for the same task may be writing the same bytes: that one's file will do.
      if (
        !(error instanceof TransferError) ||
        !/^(?:upload_locked|offset_mismatch|not_active)$/.test(error.code)
      )
        throw error;
    });
  }
  return handle;
}
