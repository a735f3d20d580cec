/** A server for the suite alone: the endpoint and the task engine of this project, with the suite's fixture tools in them. */
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { serve } from "@hono/node-server";
import { createMcpEndpoint, type McpEndpoint } from "../../src/mcp/endpoint.ts";
import { openStore } from "../../src/store/open-store.ts";
import { createLinks } from "../../src/transfer/links.ts";
import { taskKinds, taskTools } from "./fixture-tasks.ts";
import { protocolTools } from "./fixture-tools.ts";

export interface FixtureServer {
  readonly url: string;
  stop(): Promise<void>;
}

export async function startFixtureServer(): Promise<FixtureServer> {
  const dataDir = await mkdtemp(path.join(os.tmpdir(), "longshore-conformance-"));
  const store = await openStore({
    dataDir,
    fsync: "never",
    limits: {
      maxFileBytes: 2 ** 30,
      inlineChunkBytes: 262_144,
      inlineFileBytes: 4_194_304,
      uploadTtlMs: 86_400_000,
      fileTtlMs: null,
      downloadTtlMs: 3_600_000,
    },
    // The suite leaves tasks of a minute behind it.
    tasks: { concurrency: 64, perPrincipal: 64, closePatienceMs: 100 },
    quota: { maxBytes: null, maxFiles: null },
    minFreeBytes: 0,
    log: () => {},
  });
  for (const kind of taskKinds) store.tasks.register(kind);
  let endpoint: McpEndpoint | undefined;
  const fetch = (request: Request) => endpoint?.fetch(request) ?? new Response(null, { status: 503 });
  const { port, close } = await listen(fetch);
  endpoint = createMcpEndpoint({
    engine: store.transfers,
    tasks: store.tasks,
    moreTools: taskTools,
    protocolTools,
    links: createLinks(`http://127.0.0.1:${port}`),
    principalOf: () => "local",
    allowedHosts: [],
    allowedOrigins: [],
    log: () => {},
    serverInfo: { name: "longshore-conformance", version: "1" },
  });
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async stop() {
      await endpoint?.close();
      await close();
      await store.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

function listen(
  fetch: (request: Request) => Promise<Response> | Response,
): Promise<{ port: number; close: () => Promise<void> }> {
  return new Promise((resolve) => {
    const server = serve({ fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) => {
      const close = () =>
        new Promise<void>((closed) => {
          server.close(() => closed());
          if ("closeAllConnections" in server) server.closeAllConnections();
        });
      resolve({ port, close });
    });
  });
}
