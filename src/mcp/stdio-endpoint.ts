/**
 * The MCP endpoint on a pair of streams, for hosts that start a server as a child process: one connection, of clients of 2026-07-28 and of
 * 2025-11-25 and before. The same tools as over HTTP; both sides send requests, so a task's questions are put to clients that can be asked.
 */
import { randomUUID } from "node:crypto";
import type { Readable, Writable } from "node:stream";
import { type Implementation, STDIO_DEFAULT_MAX_BUFFER_SIZE } from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import type { TransferError } from "../errors.ts";
import type { Log } from "../log.ts";
import type { TaskEngine } from "../tasks/engine.ts";
import type { TransferEngine } from "../transfer/engine.ts";
import type { Links } from "../transfer/links.ts";
import { CallScope } from "./call-scope.ts";
import { maxMessageBytes } from "./message-size.ts";
import { localPrincipal } from "./sdk-call.ts";
import type { ToolContext, ToolDefinition } from "./tool-definition.ts";
import { toolServerFactory } from "./tool-server.ts";
import { durableTaskTools } from "./tools/durable-task-tools.ts";
import { fileTools } from "./tools/file-tools.ts";

export interface StdioEndpointOptions {
  readonly engine: TransferEngine;
  readonly tasks: TaskEngine;
  /** Offered between the tools for files and those for tasks. */
  readonly moreTools?: readonly ToolDefinition[];
  readonly links: Links;
  readonly log: Log;
  readonly serverInfo: Implementation;
  readonly input: Readable;
  /** Gets whole messages and nothing else. */
  readonly output: Writable;
}

export interface StdioEndpoint {
  /** Resolves when the host has closed its end of either stream, or has sent a message so long that the connection was given up. */
  readonly closed: Promise<void>;
  /** Ends waits, lets running calls finish and answer where anybody still reads, and closes the connection. */
  close(): Promise<void>;
}

export function createStdioEndpoint(options: StdioEndpointOptions): StdioEndpoint {
  const { engine, tasks, moreTools = [], links, log, serverInfo, input, output } = options;
  const calls = new CallScope();
  const buildServer = toolServerFactory({
    serverInfo,
    tools: [...fileTools, ...moreTools, ...durableTaskTools],
    tasks: true,
    // There is one caller on a connection, and whoever can start this program can read its folder anyway.
    separateCallers: true,
    connection: "stream",
  });
  const contextFor = (caller: AbortSignal): ToolContext => ({
    principal: localPrincipal,
    requestId: randomUUID(),
    engine,
    links,
    tasks,
    get signal() {
      return calls.signal(caller);
    },
  });
  const onFault = (error: TransferError, tool?: string): void =>
    log({
      level: "error",
      event: "mcp.fault",
      ...(tool !== undefined && { tool }),
      error: error.cause ?? error,
    });

  const maxBufferSize = Math.max(STDIO_DEFAULT_MAX_BUFFER_SIZE, maxMessageBytes(engine.limits));
  const transport = new StdioServerTransport(input, output, { maxBufferSize });
  const closed = new Promise<void>((resolve) => {
    // It also closes itself, and leaves the streams open: the host would wait for answers for ever.
    const close = transport.close.bind(transport);
    transport.close = () => {
      resolve();
      return close();
    };
    for (const event of ["end", "close", "error"]) input.once(event, () => resolve());
    // Whoever does not read any more cannot be told, and need not be told of it.
    output.on("error", () => resolve());
  });
  const connection = serveStdio(
    ({ era }) =>
      buildServer({
        era,
        contextOf: ({ mcpReq }) => contextFor(mcpReq.signal),
        run: (call) => calls.run(call),
        onFault,
      }),
    {
      transport,
      onerror: (error) => log({ level: "debug", event: "mcp.refused", reason: error.message.slice(0, 200) }),
    },
  );
  return {
    closed,
    async close() {
      await calls.close();
      await connection.close();
    },
  };
}
