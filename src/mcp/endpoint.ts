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
import type { TransferEngine } from "../transfer/engine.ts";
import type { Links } from "../transfer/links.ts";
import { CallScope } from "./call-scope.ts";
import { callTool } from "./call-tool.ts";
import { readJson, refusal } from "./json-rpc.ts";
import { createRequestGuards } from "./request-guards.ts";
import { toolServerFactory } from "./tool-server.ts";
import { fileTools } from "./tools/file-tools.ts";

export interface McpEndpointOptions {
  readonly engine: TransferEngine;
  readonly links: Links;
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
}

/** Beside the base64 of a whole inline file, so that a chunk far too large still gets its envelope. */
const messageBytes = 1 << 20;

export function createMcpEndpoint(options: McpEndpointOptions): McpEndpoint {
  const { engine, links, principalOf, log, serverInfo, requestIdOf = () => randomUUID() } = options;
  const guards = createRequestGuards({ ...options, publicUrl: links.publicUrl });
  const maxBodyBytes = messageBytes + Math.ceil(engine.limits.inlineFileBytes / 3) * 4;
  const buildServer = toolServerFactory({ serverInfo, tools: fileTools });
  const calls = new CallScope();
  /** By the request that the SDK hands back when it wants a server for it. */
  const callers = new WeakMap<Request, Caller>();
  let closed = false;
  const fault = (requestId: string, error: TransferError, more: { tool?: string } = {}) =>
    log({ level: "error", event: "mcp.fault", requestId, ...more, error: error.cause ?? error });

  const handler = createMcpHandler(
    ({ requestInfo }) => {
      const caller = requestInfo === undefined ? undefined : callers.get(requestInfo);
      if (caller === undefined) throw new Error("a server was wanted for a request of unknown origin");
      return buildServer((tool, given, { mcpReq }) => {
        const context = {
          ...caller,
          engine,
          links,
          get signal() {
            return calls.signal(mcpReq.signal);
          },
        };
        return calls.run(() =>
          callTool(tool, given, context, (error) => fault(caller.requestId, error, { tool: tool.name })),
        );
      });
    },
    {
      onerror: (error) => log({ level: "debug", event: "mcp.refused", reason: error.message.slice(0, 200) }),
    },
  );

  async function serve(request: Request): Promise<Response> {
    if (request.method === "OPTIONS") return guards.preflight(request);
    const requestId = requestIdOf(request);
    try {
      if (closed)
        throw new TransferError("storage_unavailable", "The server is stopping.", { retryAfterSeconds: 5 });
      callers.set(request, { principal: await principalOf(request), requestId });
    } catch (thrown) {
      const error = asTransferError(thrown);
      if (error.code === "internal_error") fault(requestId, error);
      return refusal(error, requestId);
    }
    // What is no POST of JSON is refused by the SDK without its body being read.
    if (request.method !== "POST" || !isJsonContentType(request.headers.get("content-type")))
      return handler.fetch(request);
    const body = await readJson(request, maxBodyBytes);
    return body instanceof Response ? body : handler.fetch(request, { parsedBody: body.json });
  }

  return {
    async fetch(request) {
      const refused = guards.refuse(request);
      if (refused !== undefined) return refused;
      try {
        return guards.share(request, await serve(request));
      } catch (thrown) {
        const [requestId, error] = [requestIdOf(request), asTransferError(thrown)];
        fault(requestId, error);
        return guards.share(request, refusal(error, requestId));
      }
    },
    async close() {
      closed = true;
      await calls.close();
      await handler.close();
    },
  };
}
