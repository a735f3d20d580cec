/**
 * Offers tools on a user's `McpServer`, of `@modelcontextprotocol/sdk` (v1) or of `@modelcontextprotocol/server` (v2), by what both have
 * in public. Nothing is taken over: the server's own tools and handlers stay as they are.
 *
 * Tasks by the extension of 2026-07-28 are offered on v2, whose `McpServer` lets a tool answer with a task. Core tasks of 2025-11-25 are not:
 * both SDKs answer `tools/call` themselves, and know no way to start such a task and yet answer at once whoever asks for none. Clients of
 * that time have the `durable_task_*` tools.
 */
import { randomUUID } from "node:crypto";
import type { Server, ServerContext } from "@modelcontextprotocol/server";
import { asTransferError, type TransferError } from "../errors.ts";
import { callTool, errorResult } from "./call-tool.ts";
import { listedAs } from "./listed-schema.ts";
import { listTool } from "./listing.ts";
import { type SdkCall, sdkCallOf } from "./sdk-call.ts";
import type { Served } from "./served.ts";
import {
  declaredCapabilities,
  declaresTasks,
  serveTasksExtension,
  tasksExtension,
} from "./task-extension.ts";
import { asProtocolErrors } from "./task-protocol.ts";
import { startExtensionTask } from "./tool-caller.ts";
import type { ToolContext, ToolDefinition } from "./tool-definition.ts";

/**
 * The part of an `McpServer` that is used; that of v1 and that of v2 both have it.
 *
 * @example
 * const mcp: McpServerLike = new McpServer({ name: "my-server", version: "1.0.0" });
 */
export interface McpServerLike {
  // The SDKs' own types of these differ, and are generic over schemas: what is passed is checked by tests over both.
  registerTool(name: string, config: never, callback: never): unknown;
  readonly server: object;
}

/** A tool, what its calls are given, and who hears of its faults. */
export interface OfferedTool {
  readonly tool: ToolDefinition;
  /** JSON Schemas in place of the tool's own; asked when the tools are listed. */
  readonly listed?: { readonly input: () => object; readonly output: () => object };
  readonly calls: Calls;
}

export interface Calls {
  /** May throw `TransferError` (`unauthorized`, `forbidden`). */
  contextOf(call: SdkCall, requestId: string): Promise<ToolContext>;
  onFault(error: TransferError, requestId: string, tool?: string): void;
}

/**
 * A server to which `withTasks` and `withFileTransfer` attach; from {@link asToolRegistrar}.
 *
 * @example
 * const registrar: ToolRegistrar = asToolRegistrar(mcp);
 */
export interface ToolRegistrar {
  /** Which SDK the server is of. */
  readonly sdk: "v1" | "v2";
  /** @internal Once for each name: a second time is passed over. Throws where the server has a tool of its own by that name. */
  offer(tool: OfferedTool): void;
  /** @internal Answers `tasks/*` of the extension, where the server can. Once. */
  serveTasks(calls: Calls): void;
}

type Register = (
  name: string,
  config: object,
  callback: (args: unknown, context: unknown) => unknown,
) => unknown;

/** Of each server what has been offered on it: asking twice for its registrar gives the same one. */
const registrars = new WeakMap<McpServerLike, ToolRegistrar>();

/**
 * Makes the `McpServer` of either SDK ready for {@link withTasks} and {@link withFileTransfer}. Attach before `connect()`, as with every
 * registration of tools.
 *
 * @example
 * const mcp = new McpServer({ name: "my-server", version: "1.0.0" });
 * const registrar = asToolRegistrar(mcp);
 * withTasks(registrar, { store });
 */
export function asToolRegistrar(mcp: McpServerLike): ToolRegistrar {
  const known = registrars.get(mcp);
  if (known !== undefined) return known;
  const registrar = createRegistrar(mcp);
  registrars.set(mcp, registrar);
  return registrar;
}

function createRegistrar(mcp: McpServerLike): ToolRegistrar {
  if (typeof (mcp as Partial<McpServerLike>).registerTool !== "function")
    throw new TypeError(
      "asToolRegistrar takes an McpServer of @modelcontextprotocol/sdk or @modelcontextprotocol/server.",
    );
  const register = mcp.registerTool.bind(mcp) as unknown as Register;
  // Of v2 alone: it knows of the answers that only the revision of 2026-07-28 has.
  const sdk = "projectCallToolResult" in mcp.server ? "v2" : "v1";
  const offered = new Set<string>();
  let servesTasks = false;
  return {
    sdk,
    offer(one) {
      const { tool } = one;
      if (offered.has(tool.name)) return;
      register(tool.name, registrationOf(one), (args, context) => answer(one, args, context));
      offered.add(tool.name);
    },
    serveTasks(calls) {
      const server = mcp.server as Server;
      // What a server can do is told when it connects; afterwards it is too late to say more.
      if (servesTasks || sdk === "v1" || server.transport !== undefined) return;
      servesTasks = true;
      server.registerCapabilities({ extensions: { [tasksExtension]: {} } });
      serveTasksExtension(server, async (context, work) => {
        const requestId = randomUUID();
        const onFault = (error: TransferError): void => calls.onFault(error, requestId);
        return asProtocolErrors(requestId, onFault, async () =>
          work(await calls.contextOf(sdkCallOf(context), requestId)),
        );
      });
    },
  };
}

/** Schemas of our own tools never change, and a server is built for each request. */
const registrations = new WeakMap<ToolDefinition, object>();

function registrationOf({ tool, listed }: OfferedTool): object {
  const known = registrations.get(tool);
  if (known !== undefined) return known;
  const { title, description, annotations } = tool;
  const own = once(() => listTool(tool));
  const { input = () => own().inputSchema, output = () => own().outputSchema } = listed ?? {};
  const registration = {
    title,
    description,
    annotations,
    inputSchema: listedAs(input),
    outputSchema: listedAs(output),
  };
  registrations.set(tool, registration);
  return registration;
}

function once<T>(work: () => T): () => T {
  let done: { readonly value: T } | undefined;
  return () => {
    done ??= { value: work() };
    return done.value;
  };
}

async function answer({ tool, calls }: OfferedTool, args: unknown, sdkContext: unknown): Promise<object> {
  const requestId = randomUUID();
  const onFault = (error: TransferError, name?: string): void => calls.onFault(error, requestId, name);
  let context: ToolContext;
  try {
    context = await calls.contextOf(sdkCallOf(sdkContext), requestId);
  } catch (thrown) {
    const error = asTransferError(thrown);
    if (error.code === "internal_error") onFault(error, tool.name);
    return errorResult(error, requestId);
  }
  if (tool.starts === undefined || !wantsTask(sdkContext)) return callTool(tool, args, context, onFault);
  const served: Served = { era: "modern", contextOf: () => context, run: (call) => call(), onFault };
  const started = await startExtensionTask(
    { ...tool, starts: tool.starts },
    { args, context: sdkContext, served },
  );
  // The SDK holds every answer of a tool against the tool's output schema, so the task is told in that form too.
  return "taskId" in started
    ? { ...started, content: [], structuredContent: { taskId: started.taskId, status: started.status } }
    : started;
}

/** Whether this request has declared the extension. Only contexts of v2 have a `mcpReq`. */
function wantsTask(sdkContext: unknown): sdkContext is ServerContext {
  if (typeof sdkContext !== "object" || sdkContext === null || !("mcpReq" in sdkContext)) return false;
  return declaresTasks(declaredCapabilities(sdkContext as ServerContext));
}
