/** The tasks extension of 2026-07-28 on a user's own server of the v2 SDK, driven by its official client. */
import { Readable } from "node:stream";
import { serve } from "@hono/node-server";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  createApplicationInputHandler,
  createTaskSessionFromClient,
} from "@modelcontextprotocol/ext-tasks/client";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { Hono } from "hono";
import { expect, onTestFinished, test } from "vitest";
import { openStore } from "../../src/index.ts";
import { tempDir } from "../support/temp-dir.ts";
import { equip } from "./programs/tools.ts";

const clientInfo = { name: "c", version: "1" };
const capabilities = {
  elicitation: { form: {} },
  extensions: { "io.modelcontextprotocol/tasks": {} },
} as const;

async function startServer(): Promise<{ url: URL; upload(text: string): Promise<string> }> {
  const store = await openStore({ dataDir: await tempDir(), fsync: "never", minFreeBytes: 0, log: () => {} });
  const handler = createMcpHandler(() => {
    const mcp = new McpServer({ name: "s", version: "1" });
    equip(mcp, store, "http://127.0.0.1:1");
    return mcp;
  });
  const app = new Hono().all("/mcp", (c) => handler.fetch(c.req.raw));
  const { port, close } = await new Promise<{ port: number; close: () => void }>((resolve) => {
    const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, (address) =>
      resolve({ port: address.port, close: () => server.close() }),
    );
  });
  onTestFinished(async () => {
    close();
    await store.close();
  });
  return {
    url: new URL(`http://127.0.0.1:${port}/mcp`),
    async upload(text) {
      const bytes = Buffer.from(text);
      const { transfer } = await store.transfers.createWith(
        "local",
        {
          filename: "a",
          contentType: null,
          metadata: null,
          sizeBytes: bytes.length,
          sha256: null,
          idempotencyKey: null,
        },
        { offset: 0, body: { stream: bodyOf(bytes), lengthBytes: bytes.length } },
      );
      return transfer.handle;
    },
  };
}

async function openSession(url: URL, answer: string) {
  const client = new Client(clientInfo, { capabilities, versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(url));
  let id = 1000;
  // The session frames requests for 2026-07-28 itself; how they travel is up to the host.
  const rawDispatch = async (
    request: { method: string; params?: Record<string, unknown> },
    options: { signal?: AbortSignal } = {},
  ) => {
    const name = request.params?.name ?? request.params?.taskId;
    id += 1;
    const response = await fetch(url, {
      method: "POST",
      signal: options.signal ?? null,
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": request.method,
        ...(name !== undefined && { "mcp-name": String(name) }),
      },
      body: JSON.stringify({ jsonrpc: "2.0", id, ...request }),
    });
    const text = await response.text();
    const data = text.startsWith("{")
      ? text
      : text
          .split("\n")
          .findLast((line) => line.startsWith("data:"))
          ?.slice(5);
    const message = JSON.parse(data ?? "{}") as { result?: unknown; error?: unknown };
    return message.error === undefined
      ? { kind: "result", result: message.result }
      : { kind: "error", error: message.error };
  };
  const session = createTaskSessionFromClient(
    client as never,
    {
      endpointId: "s",
      rawDispatch,
      v2RequestFraming: { protocolVersion: "2026-07-28", clientInfo, clientCapabilities: capabilities },
      onInputRequest: createApplicationInputHandler({
        elicitation: async () => ({ action: "accept", content: { answer } }),
        sampling: () => Promise.reject(new Error("not here")),
        roots: async () => ({ roots: [] }),
      } as never),
    } as never,
  );
  onTestFinished(async () => {
    await session.close();
    await client.close();
  });
  return { session, client };
}

function bodyOf(bytes: Buffer): never {
  return Readable.from([bytes]) as never;
}

test("a client that declares the extension gets tasks by it: complete with a question, failure and cancel", async () => {
  const { url, upload } = await startServer();
  const handle = await upload("one\ntwo\n");

  const { session, client } = await openSession(url, "yes");
  expect(client.getServerCapabilities()?.extensions).toEqual({ "io.modelcontextprotocol/tasks": {} });
  const good = await session.callTool("write-report", { handle });
  const seen: string[] = [];
  const { outcome } = await good.settle({
    onEvent: (event: { type: string; task?: { status: string } }) =>
      void seen.push(event.task?.status ?? event.type),
  } as never);
  expect(good.kind).toBe("task");
  expect(seen).toContain("input_required");
  expect(outcome).toMatchObject({
    status: "completed",
    result: { structuredContent: { status: "completed", result: { copies: 2, mood: "calm" } } },
  });

  const refusing = await openSession(url, "no");
  const bad = await refusing.session.callTool("write-report", { handle });
  expect((await bad.settle()).outcome).toMatchObject({
    status: "completed",
    result: { isError: true, structuredContent: { status: "failed", error: { code: "forbidden" } } },
  });

  const endless = await session.callTool("wait-for-ever", {});
  await endless.cancel();
  expect((await endless.settle()).outcome.status).toBe("cancelled");
});

test("a client that does not declare it never hears of it", async () => {
  const { url } = await startServer();
  const client = new Client(clientInfo, { versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(url));
  onTestFinished(() => client.close());
  const result = await client.callTool({ name: "wait-for-ever", arguments: {} });
  expect(result.structuredContent).toMatchObject({ status: "working", taskId: expect.any(String) });
  expect(result).not.toHaveProperty("taskId");
});
