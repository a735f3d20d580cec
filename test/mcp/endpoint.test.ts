/** The endpoint as an HTTP resource: both eras, guards, CORS, bounds, and what never becomes a call. */
import { describe, expect, test } from "vitest";
import { TransferError } from "../../src/errors.ts";
import { createMcpEndpoint } from "../../src/mcp/endpoint.ts";
import type { TransferEngine } from "../../src/transfer/engine.ts";
import { createLinks } from "../../src/transfer/links.ts";
import { testLimits } from "../support/engine.ts";
import { clientKinds, connect, facts } from "../support/mcp-clients.ts";
import { startMcpServer } from "../support/mcp-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const modernMeta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
};

/** A request of 2026-07-28, by hand. */
function modern(
  method: string,
  params: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): RequestInit {
  return {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": "2026-07-28",
      "Mcp-Method": method,
      ...(typeof params.name === "string" && { "Mcp-Name": params.name }),
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 7, method, params: { ...params, _meta: modernMeta } }),
  };
}

/** A request of 2025-11-25, by hand. */
function legacy(body: unknown, headers: Record<string, string> = {}): RequestInit {
  return {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      ...headers,
    },
    body: typeof body === "string" ? body : JSON.stringify(body),
  };
}

/** The endpoint without a listener, for what a client library would not send; nothing of it gets as far as an engine. */
function bareEndpoint(
  more: Partial<Parameters<typeof createMcpEndpoint>[0]> = {},
  publicUrl = "https://files.example:8443/base",
) {
  const endpoint = createMcpEndpoint({
    engine: { limits: testLimits } as TransferEngine,
    links: createLinks(publicUrl),
    principalOf: () => "local",
    allowedHosts: [],
    allowedOrigins: ["https://app.example"],
    log: () => {},
    serverInfo: { name: "longshore", version: "1" },
    ...more,
  });
  const send = (init: RequestInit, headers: Record<string, string> = {}) =>
    endpoint.fetch(
      new Request("http://x/mcp", {
        ...init,
        headers: { Host: "localhost:8484", ...(init.headers as Record<string, string>), ...headers },
      }),
    );
  return { endpoint, send };
}

describe.each(clientKinds)("%s", (kind) => {
  test("connects, learns who the server is and how to use it, and gets the same tools", async () => {
    const { url } = await startMcpServer();
    const client = await connect(kind, url);
    const server = client.server();
    expect(server).toMatchObject({ name: "longshore", version: "0.0.0-test" });
    expect(server.instructions).toContain("upload_create");
    expect(server.protocol).toBe(kind === clientKinds[0] ? "2026-07-28" : "2025-11-25");
    const other = await connect(clientKinds[0], url);
    expect((await client.tools()).map(({ name }) => name)).toEqual(
      (await other.tools()).map(({ name }) => name),
    );
  });

  test("gets a JSON-RPC error, and no result, for a tool that does not exist", async () => {
    const { url } = await startMcpServer();
    const client = await connect(kind, url);
    await expect(client.call("file_import", { url: "https://example.com" })).rejects.toMatchObject({
      code: -32602,
    });
  });
});

describe("calls", () => {
  test("many at once in both eras keep their answers apart", async () => {
    const { url } = await startMcpServer();
    const clients = await Promise.all([connect(clientKinds[0], url), connect(clientKinds[1], url)]);
    const names = Array.from({ length: 60 }, (_, index) => `file-${index}.bin`);
    const created = await Promise.all(
      names.map((filename, index) => facts(clients[index % 2] ?? clients[0], "upload_create", { filename })),
    );
    expect(created.map(({ filename }) => filename)).toEqual(names);
    expect(new Set(created.map(({ handle }) => handle)).size).toBe(60);
  });

  test("of a batch, which clients of 2025-03-26 may send, are all answered", async () => {
    const { url } = await startMcpServer();
    const call = (id: number, filename: string) => ({
      jsonrpc: "2.0",
      id,
      method: "tools/call",
      params: { name: "upload_create", arguments: { filename } },
    });
    const response = await fetch(url, legacy([call(1, "a"), call(2, "b")]));
    const text = await response.text();
    const answers = [...text.matchAll(/^data: (.+)$/gm)].map(
      ([, json]) => JSON.parse(json ?? "") as { id: number; result: { structuredContent: object } },
    );
    expect(answers.map(({ id }) => id).sort()).toEqual([1, 2]);
    for (const { id, result } of answers)
      expect(result.structuredContent).toMatchObject({ filename: id === 1 ? "a" : "b" });
  });

  test("a caller that hangs up ends its wait", async () => {
    let ended = 0;
    const { url } = await startMcpServer({
      wrapEngine: (engine) => ({
        ...engine,
        limits: engine.limits,
        create: engine.create.bind(engine),
        status: async (principal, handle, options) => {
          const transfer = await engine.status(principal, handle, options);
          if (options?.waitMs) ended += 1;
          return transfer;
        },
      }),
    });
    const client = await connect(clientKinds[0], url);
    const { handle } = await facts(client, "upload_create", { filename: "a" });
    const hangUp = new AbortController();
    const params = { name: "upload_status", arguments: { handle, waitMs: 40_000 } };
    const call = fetch(url, { ...modern("tools/call", params), signal: hangUp.signal }).catch(
      () => "hung up",
    );
    setTimeout(() => hangUp.abort(), 200);
    expect(await call).toBe("hung up");
    await waitUntil(() => ended === 1);
  });

  test("closing ends waits with an answer, and refuses what comes later", async () => {
    const { url, endpoint } = await startMcpServer();
    const clients = await Promise.all([connect(clientKinds[0], url), connect(clientKinds[1], url)]);
    const { handle } = await facts(clients[0], "upload_create", { filename: "a" });
    const waiting = clients.map((client) => facts(client, "upload_status", { handle, waitMs: 40_000 }));
    await new Promise((resolve) => setTimeout(resolve, 300));
    const start = performance.now();
    await endpoint.close();
    for (const status of await Promise.all(waiting)) expect(status).toMatchObject({ status: "receiving" });
    expect(performance.now() - start).toBeLessThan(5000);
    const late = await fetch(url, modern("tools/list"));
    expect(late.status).toBe(503);
    expect(late.headers.get("retry-after")).toBe("5");
    expect(await late.json()).toMatchObject({
      jsonrpc: "2.0",
      error: { data: { code: "storage_unavailable" } },
    });
  });
});

describe("the guard", () => {
  test.each([
    ["localhost:8484", 200],
    ["127.0.0.1:1", 200],
    ["[::1]:8484", 200],
    ["mine.localhost", 200],
    ["127.0.0.7:8484", 200],
    ["files.example:8443", 200],
    ["FILES.EXAMPLE", 200],
    ["inner.example:80", 200],
    ["evil.example", 403],
    ["localhost.evil.example", 403],
    ["files.example.evil.example:8443", 403],
    ["127.0.0.1@evil.example", 403],
    ["", 403],
  ])("answers to Host %j with %i", async (host, status) => {
    const { send } = bareEndpoint({ allowedHosts: ["inner.example"] });
    const response = await send(modern("tools/list"), { Host: host });
    expect(response.status).toBe(status);
    if (status === 403)
      expect(await response.json()).toMatchObject({ jsonrpc: "2.0", id: null, error: { code: -32000 } });
  });

  test.each([
    ["http://localhost:3000", 200],
    ["http://127.0.0.1:6274", 200],
    ["http://dev.localhost:5173", 200],
    ["http://[::1]:5173", 200],
    ["https://files.example:8443", 200],
    ["https://app.example", 200],
    ["https://app.example:444", 403],
    ["http://app.example", 403],
    ["https://files.example", 403],
    ["https://evil.example", 403],
    ["ftp://localhost", 403],
    ["http://localhost.evil.example", 403],
    ["http://127.0.0.1.evil.example", 403],
    ["null", 403],
    ["file://", 403],
  ])("answers to Origin %j with %i, on any method", async (origin, status) => {
    const { send } = bareEndpoint();
    const post = await send(modern("tools/list"), { Origin: origin });
    const preflight = await send(
      { method: "OPTIONS" },
      { Origin: origin, "Access-Control-Request-Method": "POST" },
    );
    expect(post.status).toBe(status);
    expect(preflight.status).toBe(status === 200 ? 204 : 403);
    for (const response of [post, preflight]) {
      expect(response.headers.get("access-control-allow-origin")).toBe(status === 200 ? origin : null);
    }
  });

  test("tells an allowed page what it may send and read, without credentials", async () => {
    const { send } = bareEndpoint();
    const preflight = await send({ method: "OPTIONS" }, { Origin: "https://app.example" });
    const allowed = preflight.headers.get("access-control-allow-headers")?.split(", ") ?? [];
    for (const name of [
      "Authorization",
      "Content-Type",
      "Mcp-Session-Id",
      "MCP-Protocol-Version",
      "Mcp-Method",
      "Mcp-Name",
      "Last-Event-ID",
    ]) {
      expect(allowed).toContain(name);
    }
    expect(preflight.headers.get("access-control-allow-methods")).toContain("POST");
    expect(preflight.headers.has("access-control-allow-credentials")).toBe(false);
    const response = await send(legacy("{"), { Origin: "https://app.example" });
    expect(response.status).toBe(400);
    expect(response.headers.get("access-control-expose-headers")).toContain("WWW-Authenticate");
    expect(response.headers.get("access-control-expose-headers")).toContain("Mcp-Session-Id");
    expect(response.headers.get("vary")).toContain("Origin");
  });

  test("says nothing of CORS to those who are no page", async () => {
    const { send } = bareEndpoint();
    const response = await send(modern("tools/list"));
    expect(response.headers.has("access-control-allow-origin")).toBe(false);
  });

  test("comes before everything else: a refused request is neither read nor asked who it is", async () => {
    let asked = 0;
    const { send } = bareEndpoint({
      principalOf: () => {
        asked += 1;
        return "local";
      },
    });
    await send(modern("tools/list"), { Origin: "https://evil.example" });
    await send(modern("tools/list"), { Host: "evil.example" });
    expect(asked).toBe(0);
  });
});

describe("a caller who may not", () => {
  test("gets the status and a JSON-RPC body with the error", async () => {
    const { send } = bareEndpoint({
      principalOf: () => {
        throw new TransferError("unauthorized", "No key was sent.");
      },
    });
    for (const init of [modern("tools/list"), legacy({ jsonrpc: "2.0", id: 1, method: "tools/list" })]) {
      const response = await send(init);
      expect(response.status).toBe(401);
      expect(await response.json()).toEqual({
        jsonrpc: "2.0",
        id: null,
        error: {
          code: -32000,
          message: "No key was sent.",
          data: expect.objectContaining({ code: "unauthorized" }),
        },
      });
    }
  });

  test("gets nothing of the inside where finding out failed", async () => {
    const { send } = bareEndpoint({
      requestIdOf: () => "r1",
      principalOf: () => Promise.reject(new Error("ldap://secret is down")),
    });
    const response = await send(modern("tools/list"));
    expect(response.status).toBe(500);
    const body = await response.text();
    expect(body).toContain('"requestId":"r1"');
    expect(body).not.toContain("secret");
  });
});

describe("what is no call", () => {
  test.each(["", "{", "nonsense", '{"jsonrpc":"2.0"', "\uFEFF\u0000", "[1,", '"\\ud800'])(
    "a body of %j is a parse error",
    async (body) => {
      const { send } = bareEndpoint();
      for (const headers of [{}, { "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list" }]) {
        const response = await send(legacy(body, headers));
        expect(response.status).toBe(400);
        expect(await response.json()).toMatchObject({ jsonrpc: "2.0", id: null, error: { code: -32700 } });
      }
    },
  );

  test.each([
    "null",
    "1",
    '"x"',
    "{}",
    "[]",
    "[[]]",
    '[{"jsonrpc":"2.0"}]',
    '{"jsonrpc":"1.0","id":1,"method":"ping"}',
    '{"jsonrpc":"2.0","id":{},"method":"ping"}',
  ])("JSON that is no JSON-RPC (%s) is an invalid request", async (body) => {
    const { send } = bareEndpoint();
    const response = await send(legacy(body));
    expect(response.status).toBe(400);
    const answer = (await response.json()) as { error: { code: number } };
    expect([-32600, -32700]).toContain(answer.error.code);
  });

  test("other media types are refused with 415 and not read", async () => {
    const { send } = bareEndpoint();
    const response = await send(legacy("{}", { "Content-Type": "text/plain" }));
    expect(response.status).toBe(415);
    expect(await response.json()).toMatchObject({ error: { code: -32000 } });
  });

  test.each(["GET", "DELETE", "PUT", "PATCH", "HEAD"])("%s is not allowed, with Allow", async (method) => {
    const { send } = bareEndpoint();
    const response = await send({ method });
    expect(response.status).toBe(405);
    expect(response.headers.get("allow")).toContain("POST");
  });

  test("an unknown method is a JSON-RPC error", async () => {
    const { send } = bareEndpoint();
    const response = await send(modern("tools/fly"));
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ id: 7, error: { code: -32601 } });
  });

  test.each(["x", ["x"], 5, null, true])(
    "arguments that are no object (%j) are invalid params",
    async (args) => {
      const { send } = bareEndpoint();
      const params = { name: "file_list", arguments: args };
      const response = await send(modern("tools/call", params));
      expect(await response.json()).toMatchObject({ id: 7, error: { code: -32602 } });
    },
  );

  test("a body over the bound is refused with 413, with and without an announced length, and no more of it is read", async () => {
    const { send } = bareEndpoint();
    const announced = await send(legacy(`{"x":"${"a".repeat(8_000_000)}"}`, { "Content-Length": "8000008" }));
    expect(announced.status).toBe(413);
    let pulled = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        pulled += 65_536;
        controller.enqueue(new Uint8Array(65_536).fill(0x20));
      },
    });
    const init = { ...legacy(""), body: endless, duplex: "half" } as RequestInit;
    const response = await send(init);
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ jsonrpc: "2.0", error: { code: -32000 } });
    expect(pulled).toBeLessThan(7_500_000);
  });

  test("a whole inline file in one chunk still fits a request, and gets the envelope", async () => {
    const { send } = bareEndpoint();
    const data = "A".repeat(Math.ceil(4_194_304 / 3) * 4);
    const params = { name: "upload_write", arguments: { handle: `fh_${"a".repeat(32)}`, offset: 0, data } };
    const response = await send(modern("tools/call", params));
    expect(await response.json()).toMatchObject({
      result: { isError: true, structuredContent: { error: { code: "chunk_too_large" } } },
    });
  });
});
