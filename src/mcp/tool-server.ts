/**
 * A server of the SDK that offers a fixed list of tools. Built for each request, so everything that can be is made beforehand.
 *
 * It is the SDK's `Server` and not its `McpServer`: that one would check arguments itself and refuse them without the envelope, and
 * would work the list and the schemas out again for each request.
 */
import {
  type CallToolResult,
  type Implementation,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
  type Tool,
} from "@modelcontextprotocol/server";
import type { ToolResult } from "./call-tool.ts";
import { instructions } from "./instructions.ts";
import { listTool } from "./listing.ts";
import type { ToolDefinition } from "./tool-definition.ts";

export interface ToolServerOptions {
  readonly serverInfo: Implementation;
  readonly tools: readonly ToolDefinition[];
}

export type RunTool = (tool: ToolDefinition, given: unknown, context: ServerContext) => Promise<ToolResult>;

/** How long a client may keep the list; it changes with the version of the server only. */
const listTtlMs = 300_000;

/** Returns what builds a server for one request, whose calls go to `run`. */
export function toolServerFactory({ serverInfo, tools }: ToolServerOptions): (run: RunTool) => Server {
  const listed = { tools: tools.map((tool) => listTool(tool) as Tool) };
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const options = {
    capabilities: { tools: { listChanged: false } },
    instructions,
    cacheHints: { "tools/list": { ttlMs: listTtlMs, cacheScope: "private" } },
  } as const;
  return (run) => {
    const server = new Server(serverInfo, options);
    server.setRequestHandler("tools/list", () => listed);
    server.setRequestHandler("tools/call", async ({ params }, context) => {
      const tool = byName.get(params.name);
      if (tool === undefined)
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Tool ${params.name} not found`);
      return (await run(tool, params.arguments, context)) as CallToolResult;
    });
    return server;
  };
}
