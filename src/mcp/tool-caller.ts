/**
 * `tools/call` for both eras: finds the tool, and answers with its result, or with a task where the client can take one. The SDK hands
 * the request over as it came, so its form is checked here.
 */
import {
  ProtocolError,
  ProtocolErrorCode,
  type Result,
  type ServerContext,
} from "@modelcontextprotocol/server";
import * as z from "zod";
import { callTool, errorResult, startTask } from "./call-tool.ts";
import type { Call, ProtocolTool, Served } from "./served.ts";
import { createCoreTaskResult } from "./task-core.ts";
import { createTaskResult, declaredCapabilities, declaresTasks } from "./task-extension.ts";
import { isObject } from "./task-input.ts";
import { toProtocolError } from "./task-protocol.ts";
import type { ToolDefinition } from "./tool-definition.ts";

const callParams = z.looseObject({
  name: z.string(),
  arguments: z.custom<object>((value) => isObject(value), "Invalid input: expected an object").optional(),
  task: z.looseObject({ ttl: z.number().nullish() }).optional(),
});

type StartingTool = ToolDefinition & Pick<Required<ToolDefinition>, "starts">;

export function createToolCaller(
  tools: readonly ToolDefinition[],
  protocolTools: readonly ProtocolTool[],
): (request: { readonly params?: unknown }, context: ServerContext, served: Served) => Promise<Result> {
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const others = new Map(protocolTools.map((tool) => [tool.listed.name, tool]));
  return async ({ params }, context, served) => {
    const checked = callParams.safeParse(params);
    if (!checked.success)
      throw invalidParams(`Invalid tools/call request: ${z.prettifyError(checked.error)}`);
    const { name, arguments: args, task } = checked.data;
    const call: Call = { args, context, served };
    const other = others.get(name);
    if (other !== undefined) return other.call(call);
    const tool = byName.get(name);
    if (tool === undefined) throw invalidParams(`Tool ${name} not found`);
    if (served.era === "modern")
      return isStarting(tool) && declaresTasks(declaredCapabilities(context))
        ? startExtensionTask(tool, call)
        : result(tool, call);
    if (task === undefined) return result(tool, call);
    // 2025-11-25, Tool-Level Negotiation: a tool that says nothing of tasks forbids them.
    if (!isStarting(tool))
      throw new ProtocolError(ProtocolErrorCode.MethodNotFound, `Tool ${name} does not support tasks`);
    return startCoreTask(tool, call, task.ttl ?? null);
  };
}

async function result(tool: ToolDefinition, { args, context, served }: Call): Promise<Result> {
  return { ...(await callTool(tool, args, served.contextOf(context), served.onFault)) };
}

/**
 * Begins the task of a tool for a client that takes tasks of the extension. What is wrong with the call itself is a result like that of
 * every tool; there is no task to hand out then.
 */
export async function startExtensionTask(
  tool: ToolDefinition,
  { args, context, served }: Call,
): Promise<Result> {
  if (!isStarting(tool)) throw new Error(`the tool ${tool.name} starts no task`);
  const call = served.contextOf(context);
  const started = await startTask(tool, args, call, null, served.onFault);
  return "task" in started
    ? createTaskResult(started.task)
    : { ...errorResult(started.error, call.requestId) };
}

/** The caller can take nothing but a task or a JSON-RPC error. */
async function startCoreTask(
  tool: StartingTool,
  { args, context, served }: Call,
  ttlMs: number | null,
): Promise<Result> {
  const call = served.contextOf(context);
  const started = await startTask(tool, args, call, ttlMs, served.onFault);
  if ("task" in started) return createCoreTaskResult(started.task);
  throw toProtocolError(started.error, call.requestId);
}

function isStarting(tool: ToolDefinition): tool is StartingTool {
  return tool.starts !== undefined;
}

function invalidParams(message: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message);
}
