/**
 * The MCP endpoint over HTTP: one URL for clients of 2026-07-28 (stateless) and of 2025-11-25 and before (`initialize`, served
 * without sessions). Owns the bounds of a request and the life of its calls; what the tools do is in `tools/`.
 *
 * Promises: the same tools for every client; a tool's failure is a result with the envelope; a call that began is finished though its
 * caller goes away; no request buffers more than its bound.
 */
import { randomUUID } from "node:crypto";
import { createMcpHandler, type Implementation, isJsonContentType } from "@modelcontextprotocol/server";
import { asTransferError, TransferError } from "../errors.ts";
import type { Log } from "../log.ts";
import type { TaskEngine } from "../tasks/engine.ts";
import type { TransferEngine } from "../transfer/engine.ts";
import type { Links } from "../transfer/links.ts";
import { CallScope } from "./call-scope.ts";
import { readJson, refusal } from "./json-rpc.ts";
import { maxMessageBytes } from "./message-size.ts";
import { createRequestGuards } from "./request-guards.ts";
import type { ProtocolTool } from "./served.ts";
import { createTaskStreams, taskListenOf } from "./task-notifications.ts";
import type { ToolContext, ToolDefinition } from "./tool-definition.ts";
import { toolServerFactory } from "./tool-server.ts";
import { durableTaskTools } from "./tools/durable-task-tools.ts";
import { fileTools } from "./tools/file-tools.ts";

export interface McpEndpointOptions {
  readonly engine: TransferEngine;
  /** Where it is given, tasks are offered: by tools, by the extension of 2026-07-28 and by the core tasks of 2025-11-25. */
  readonly tasks?: TaskEngine;
  /** Offered between the tools for files and those for tasks. */
  readonly moreTools?: readonly ToolDefinition[];
  /** Offered behind all others. */
  readonly protocolTools?: readonly ProtocolTool[];
  readonly links: Links;
  /** Whether `principalOf` tells callers apart. Where it does not, nobody is shown a list of tasks by the protocol. */
  readonly separateCallers?: boolean;
  /** Who is calling. Throws `TransferError` (`unauthorized`, `forbidden`) where nobody may. */
  readonly principalOf: (request: Request) => Promise<string> | string;
  /** Host names (without port) to answer to, besides loopback names and that of the public URL. */
  readonly allowedHosts: readonly string[];
  /** Origins of pages that may call, besides loopback and the public URL's. */
  readonly allowedOrigins: readonly string[];
  readonly log: Log;
  readonly serverInfo: Implementation;
  /** Id under which faults of a request are logged; a random one where nothing is given. */
  readonly requestIdOf?: (request: Request) => string;
}

export interface McpEndpoint {
  /** Serves one request of any method. Never rejects. */
  fetch(request: Request): Promise<Response>;
  /** Ends waits and lets running calls finish; what comes later is refused. */
  close(): Promise<void>;
}

interface Caller {
  readonly principal: string;
  readonly requestId: string;
  /** Once the SDK has taken the request for one of this era. */
  era?: "legacy" | "modern";
}

export function createMcpEndpoint(options: McpEndpointOptions): McpEndpoint {
  const { engine, tasks, links, principalOf, log, serverInfo, requestIdOf = () => randomUUID() } = options;
  const { moreTools = [], protocolTools = [], separateCallers = false } = options;
  const guards = createRequestGuards({ ...options, publicUrl: links.publicUrl });
  const maxBodyBytes = maxMessageBytes(engine.limits);
  const buildServer = toolServerFactory({
    serverInfo,
    tools: [...fileTools, ...moreTools, ...(tasks === undefined ? [] : durableTaskTools)],
    protocolTools,
    tasks: tasks !== undefined,
    separateCallers,
    connection: "request",
  });
  const taskStreams = createTaskStreams(serverInfo);
  const calls = new CallScope();
  /** By the request that the SDK hands back when it wants a server for it. */
  const callers = new WeakMap<Request, Caller>();
  let closed = false;
  const fault = (requestId: string, error: TransferError, more: { tool?: string } = {}) =>
    log({ level: "error", event: "mcp.fault", requestId, ...more, error: error.cause ?? error });

  const contextFor = (caller: Caller, signal: AbortSignal): ToolContext => ({
    principal: caller.principal,
    requestId: caller.requestId,
    engine,
    links,
    ...(tasks !== undefined && { tasks }),
    get signal() {
      return calls.signal(signal);
    },
  });

  const handler = createMcpHandler(
    ({ era, requestInfo }) => {
      const caller = requestInfo === undefined ? undefined : callers.get(requestInfo);
      if (caller === undefined) throw new Error("a server was wanted for a request of unknown origin");
      caller.era = era;
      return buildServer({
        era,
        mcpMethod: requestInfo?.headers.get("mcp-method") ?? null,
        contextOf: ({ mcpReq }) => contextFor(caller, mcpReq.signal),
        run: (call) => calls.run(call),
        onFault: (error, tool) => fault(caller.requestId, error, tool === undefined ? {} : { tool }),
      });
    },
    {
      onerror: (error) => log({ level: "debug", event: "mcp.refused", reason: error.message.slice(0, 200) }),
    },
  );

  async function serve(request: Request): Promise<Response> {
    if (request.method === "OPTIONS") return guards.preflight(request);
    const requestId = requestIdOf(request);
    let caller: Caller;
    try {
      if (closed)
        throw new TransferError("storage_unavailable", "The server is stopping.", { retryAfterSeconds: 5 });
      caller = { principal: await principalOf(request), requestId };
      callers.set(request, caller);
    } catch (thrown) {
      const error = asTransferError(thrown);
      if (error.code === "internal_error") fault(requestId, error);
      return refusal(error, requestId);
    }
    // What is no POST of JSON is refused by the SDK without its body being read.
    if (request.method !== "POST" || !isJsonContentType(request.headers.get("content-type")))
      return handler.fetch(request);
    const body = await readJson(request, maxBodyBytes);
    if (body instanceof Response) return body;
    const response = await handler.fetch(request, { parsedBody: body.json });
    const listen = tasks === undefined || caller.era !== "modern" ? null : taskListenOf(body.json);
    // What the SDK refuses stays refused.
    if (listen === null || response.headers.get("content-type") !== "text/event-stream") return response;
    await response.body?.cancel();
    return taskStreams.open(listen, contextFor(caller, request.signal));
  }

  return {
    async fetch(request) {
      const refused = guards.refuse(request);
      if (refused !== undefined) return refused;
      try {
        const response = await serve(request);
        // The SDK says keep-alive, which is for the listener to say: it knows whether the client wants the connection closed.
        response.headers.delete("connection");
        return guards.share(request, response);
      } catch (thrown) {
        const [requestId, error] = [requestIdOf(request), asTransferError(thrown)];
        fault(requestId, error);
        return guards.share(request, refusal(error, requestId));
      }
    },
    async close() {
      closed = true;
      taskStreams.close();
      await calls.close();
      await handler.close();
    },
  };
}
