/** The MCP endpoint on a real loopback port over a real engine. */
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { onTestFinished } from "vitest";
import type { LogEvent } from "../../src/log.ts";
import { createMcpEndpoint, type McpEndpoint, type McpEndpointOptions } from "../../src/mcp/endpoint.ts";
import type { TaskEngine, TaskKind } from "../../src/tasks/engine.ts";
import type { TransferEngine } from "../../src/transfer/engine.ts";
import { createLinks } from "../../src/transfer/links.ts";
import { openTestStore, type TestStoreOptions } from "./engine.ts";

export interface TestServerOptions extends TestStoreOptions {
  readonly endpoint?: Partial<
    Pick<
      McpEndpointOptions,
      "principalOf" | "allowedHosts" | "allowedOrigins" | "requestIdOf" | "moreTools" | "separateCallers"
    >
  >;
  /** What runs the tasks that `moreTools` start. */
  readonly kinds?: readonly TaskKind[];
  /** Puts something between the tools and the engine. */
  readonly wrapEngine?: (engine: TransferEngine) => TransferEngine;
}

export interface TestMcpServer {
  readonly url: string;
  /** The engine itself, as the HTTP doors would use it. */
  readonly engine: TransferEngine;
  readonly tasks: TaskEngine;
  readonly endpoint: McpEndpoint;
  readonly events: readonly LogEvent[];
  readonly dataDir: string;
}

export async function startMcpServer(options: TestServerOptions = {}): Promise<TestMcpServer> {
  const store = await openTestStore({ fsync: "never", ...options });
  for (const kind of options.kinds ?? []) store.tasks.register(kind);
  const app = new Hono();
  const { port, stop } = await listen(app.fetch);
  const publicUrl = `http://127.0.0.1:${port}`;
  const endpoint = createMcpEndpoint({
    engine: options.wrapEngine?.(store.transfers) ?? store.transfers,
    tasks: store.tasks,
    links: createLinks(publicUrl),
    principalOf: () => "local",
    allowedHosts: [],
    allowedOrigins: [],
    log: (event) => void (store.events as LogEvent[]).push(event),
    serverInfo: { name: "longshore", version: "0.0.0-test" },
    ...options.endpoint,
  });
  app.all("/mcp", (c) => endpoint.fetch(c.req.raw));
  onTestFinished(async () => {
    await endpoint.close();
    await stop();
  });
  return {
    url: `${publicUrl}/mcp`,
    engine: store.transfers,
    tasks: store.tasks,
    endpoint,
    events: store.events,
    dataDir: store.dataDir,
  };
}

function listen(
  fetch: (request: Request) => Response | Promise<Response>,
): Promise<{ port: number; stop: () => Promise<void> }> {
  return new Promise((resolve) => {
    const server = serve({ fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) => {
      const stop = () =>
        new Promise<void>((stopped) => {
          server.close(() => stopped());
          if ("closeAllConnections" in server) server.closeAllConnections();
        });
      resolve({ port, stop });
    });
  });
}

/** The ticket in an upload or download URL, to use the engine as the HTTP doors do. */
export function ticketOf(url: string): string {
  return /\/(?:files|d)\/([^/]+)/.exec(url)?.[1] ?? "";
}
