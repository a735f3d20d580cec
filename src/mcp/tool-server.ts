/**
 * A server of the SDK that offers a fixed list of tools, and the tasks behind some of them in the way of the client's era. Built for
 * each request, so everything that can be is made beforehand.
 *
 * It is the SDK's `Server` and not its `McpServer`: that one would check arguments itself and refuse them without the envelope, and
 * would work the list and the schemas out again for each request.
 */
import {
  type Implementation,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type Tool,
} from "@modelcontextprotocol/server";
import { instructions, instructionsWithTasks } from "./instructions.ts";
import { listTool } from "./listing.ts";
import type { ProtocolTool, Served } from "./served.ts";
import { coreTasksCapability, serveCoreTasks } from "./task-core.ts";
import { createTaskQuestions } from "./task-elicitation.ts";
import { serveTasksExtension, tasksExtension } from "./task-extension.ts";
import { asProtocolErrors, type Serve } from "./task-protocol.ts";
import { createToolCaller } from "./tool-caller.ts";
import type { ToolDefinition } from "./tool-definition.ts";

export interface ToolServerOptions {
  readonly serverInfo: Implementation;
  readonly tools: readonly ToolDefinition[];
  /** Listed behind the others. */
  readonly protocolTools?: readonly ProtocolTool[];
  /** Whether the contexts of calls hold tasks. */
  readonly tasks: boolean;
  /** Whether callers are kept apart from each other: then, and on stdio, core tasks can be listed. */
  readonly separateCallers: boolean;
  /** `stream`: both sides send requests on one connection (stdio). `request`: each request stands alone (HTTP without sessions). */
  readonly connection: "stream" | "request";
}

/** How long a client may keep the list; it changes with the version of the server only. */
const listTtlMs = 300_000;
/** As long as any call takes: many clients give up after 60 s. */
const requestWaitMs = 45_000;
/** Where the client's own patience is all that counts. */
const streamWaitMs = 3_600_000;

/** Returns what builds a server for one request or connection. */
export function toolServerFactory(options: ToolServerOptions): (served: Served) => Server {
  const { serverInfo, tools, protocolTools = [], tasks, connection } = options;
  const list = options.separateCallers || connection === "stream";
  const extra = protocolTools.map(({ listed }) => listed);
  const modern = { tools: [...tools.map((tool) => listTool(tool) as Tool), ...extra] };
  // `execution` is of 2025-11-25 alone: in 2026-07-28 the server decides without a word beforehand.
  const legacy = { tools: [...tools.map((tool) => withExecution(tool)), ...extra] };
  const call = createToolCaller(tools, protocolTools);
  const common = {
    instructions: tasks ? instructionsWithTasks : instructions,
    cacheHints: { "tools/list": { ttlMs: listTtlMs, cacheScope: "private" } },
  } as const;
  const toolsCapability = { listChanged: false };
  const capabilities = {
    modern: { tools: toolsCapability, ...(tasks && { extensions: { [tasksExtension]: {} } }) },
    legacy: { tools: toolsCapability, ...(tasks && { tasks: coreTasksCapability({ list }) }) },
  };

  return (served) => {
    const { era } = served;
    const server = new Server(serverInfo, { ...common, capabilities: capabilities[era] });
    server.setRequestHandler("tools/list", () => (era === "modern" ? modern : legacy));
    // As a registered method, the SDK would add `content: []` to a task, and refuse one of 2025-11-25. But with a fallback, what is
    // unknown is answered with 200 where the modern era wants 404.
    if (era === "legacy" || served.mcpMethod === undefined || served.mcpMethod === "tools/call") {
      server.fallbackRequestHandler = async (request, context) => {
        if (request.method !== "tools/call")
          throw new ProtocolError(ProtocolErrorCode.MethodNotFound, "Method not found");
        return served.run(() => call(request, context, served));
      };
    }
    if (!tasks) return server;
    const serve: Serve = (context, work) =>
      served.run(() => {
        const toolContext = served.contextOf(context);
        return asProtocolErrors(toolContext.requestId, served.onFault, () => work(toolContext));
      });
    if (era === "modern") serveTasksExtension(server, serve);
    else
      serveCoreTasks(server, serve, {
        list,
        resultWaitMs: connection === "stream" ? streamWaitMs : requestWaitMs,
        questions: connection === "stream" ? createTaskQuestions(() => server.getClientCapabilities()) : null,
      });
    return server;
  };
}

function withExecution(tool: ToolDefinition): Tool {
  const listed = listTool(tool) as Tool;
  return tool.starts === undefined ? listed : { ...listed, execution: { taskSupport: "optional" } };
}
