/** What the two protocol faces of tasks have in common: how they say that a request for a task cannot be served. */
import { ProtocolError, ProtocolErrorCode, type ServerContext } from "@modelcontextprotocol/server";
import * as z from "zod";
import { asTransferError, errorBody, type TransferError } from "../errors.ts";
import type { Task } from "../tasks/engine.ts";
import { howToRespond } from "./task-facts.ts";
import type { ToolContext } from "./tool-definition.ts";

/** Answers one request of the protocol: gives `work` its caller, and makes JSON-RPC errors of what it throws. */
export type Serve = <T>(context: ServerContext, work: (call: ToolContext) => Promise<T>) => Promise<T>;

export const taskIdParams = z.looseObject({ taskId: z.string() });

/**
 * An error of the catalogue as a JSON-RPC error: invalid params (both revisions demand that for a task that does not exist), or an
 * internal error for what is no fault of the caller. The envelope's object is its data.
 */
export function toProtocolError(error: TransferError, requestId: string): ProtocolError {
  const code = error.status >= 500 ? ProtocolErrorCode.InternalError : ProtocolErrorCode.InvalidParams;
  return new ProtocolError(code, error.message, errorBody(error, requestId));
}

/** Runs a handler so that what it throws is a JSON-RPC error. `onFault` is told of what has no code of its own. */
export async function asProtocolErrors<T>(
  requestId: string,
  onFault: (error: TransferError) => void,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (thrown instanceof ProtocolError) throw thrown;
    const error = asTransferError(thrown);
    if (error.code === "internal_error") onFault(error);
    throw toProtocolError(error, requestId);
  }
}

/**
 * The JSON-RPC error that a task ended with; null for a failure of the tool's own, which is a result. A handler means the former by
 * throwing a `TransferError` whose `extra` holds the code as `jsonRpcCode`.
 */
export function protocolFailure({ error }: Task): { code: number; message: string; data: unknown } | null {
  if (error === null || !Number.isSafeInteger(error.jsonRpcCode)) return null;
  const { jsonRpcCode, ...data } = error;
  return { code: Number(jsonRpcCode), message: error.message, data };
}

/** Time to live from creation: unlimited while the task runs, since it is kept for a time after its end. */
export function ttlMs({ createdAt, expiresAt }: Task): number | null {
  return expiresAt === null ? null : Math.max(1, expiresAt.getTime() - createdAt.getTime());
}

/** One line for the person at the client, where there is something to say. */
export function statusMessage(task: Task): string | undefined {
  const { status, progress, error, cancelRequested, inputRequests } = task;
  if (cancelRequested) return "The cancel is accepted; the work is coming to its end.";
  if (status === "input_required")
    return `${inputRequests[0]?.prompt ?? "A question is open."} ${howToRespond(task)}`;
  if (status === "failed") return error?.message;
  return status === "working" ? progress?.message : undefined;
}
