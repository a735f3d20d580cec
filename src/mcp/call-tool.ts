/**
 * One tool call, from what the caller sent to the result: arguments are checked, the handler runs within its time, and success and
 * failure become results that say the same as text and as structured content. Never throws.
 */
import { asTransferError, TransferError, toEnvelope } from "../errors.ts";
import type { Task } from "../tasks/engine.ts";
import { checkArguments } from "./arguments.ts";
import { withRepair } from "./repair.ts";
import type { ResourceLink, ToolContext, ToolDefinition } from "./tool-definition.ts";

/** `CallToolResult` of MCP, as far as the tools use it; both SDKs take it. */
export interface ToolResult {
  readonly content: readonly ({ readonly type: "text"; readonly text: string } | ResourceLink)[];
  readonly structuredContent: { readonly [fact: string]: unknown };
  readonly isError?: true;
}

/** Many clients give a call up after 60 s, and an answer that comes later is lost. */
const callTimeMs = 45_000;

/** `onFault` is told of what has no code of its own, for the log. */
export async function callTool(
  tool: ToolDefinition,
  given: unknown,
  context: ToolContext,
  onFault: (error: TransferError, tool: string) => void,
): Promise<ToolResult> {
  try {
    const { args, ignored } = checkArguments(tool.inputSchema, given);
    const { facts, links = [] } = await withinTime(tool.handler(args, context));
    const { nextStep, ...told } = facts;
    return toResult({ ...told, ...(ignored.length > 0 && { ignoredArguments: ignored }), nextStep }, links);
  } catch (thrown) {
    return errorResult(failureOf(thrown, tool, given, onFault), context.requestId);
  }
}

/** Begins the task of a tool that has one. The error is what the envelope of `callTool` would hold. */
export async function startTask(
  tool: ToolDefinition & Pick<Required<ToolDefinition>, "starts">,
  given: unknown,
  context: ToolContext,
  ttlMs: number | null,
  onFault: (error: TransferError, tool: string) => void,
): Promise<{ readonly task: Task } | { readonly error: TransferError }> {
  try {
    const { args } = checkArguments(tool.inputSchema, given);
    return { task: await withinTime(tool.starts(args, context, ttlMs)) };
  } catch (thrown) {
    return { error: failureOf(thrown, tool, given, onFault) };
  }
}

function failureOf(
  thrown: unknown,
  tool: ToolDefinition,
  given: unknown,
  onFault: (error: TransferError, tool: string) => void,
): TransferError {
  const error = asTransferError(thrown);
  if (error.code === "internal_error") onFault(error, tool.name);
  return withRepair(error, tool.name, given);
}

export function errorResult(error: TransferError, requestId: string): ToolResult {
  return { ...toResult(toEnvelope(error, requestId)), isError: true };
}

export function toResult(
  facts: { readonly [fact: string]: unknown },
  links: readonly ResourceLink[] = [],
): ToolResult {
  return { content: [{ type: "text", text: JSON.stringify(facts) }, ...links], structuredContent: facts };
}

async function withinTime<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(
        new TransferError(
          "storage_unavailable",
          "The storage did not answer in time; the call may still take effect.",
          {
            retryAfterSeconds: 5,
          },
        ),
      );
    }, callTimeMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
