/** `withTasks` and `withFileTransfer` only attach: to any number of servers, which share a store and nothing else. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Client, InMemoryTransport } from "@modelcontextprotocol/client";
import { McpServer as McpServerV1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import { McpServer } from "@modelcontextprotocol/server";
import { describe, expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import * as zodV3 from "zod/v3";
import {
  asToolRegistrar,
  type OpenStoreOptions,
  openStore,
  type Store,
  TransferError,
  withFileTransfer,
  withTasks,
} from "../../src/index.ts";
import { tempDir } from "../support/temp-dir.ts";
import { equip } from "./programs/tools.ts";

const info = { name: "s", version: "1" };

async function scratchStore(more: Partial<OpenStoreOptions> = {}): Promise<Store> {
  const store = await openStore({
    dataDir: await tempDir(),
    fsync: "never",
    minFreeBytes: 0,
    log: () => {},
    ...more,
  });
  onTestFinished(() => store.close());
  return store;
}

function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
}

async function clientOf(mcp: McpServer): Promise<Client> {
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: "c", version: "1" });
  await Promise.all([mcp.connect(theirs), client.connect(ours)]);
  onTestFinished(() => client.close());
  return client;
}

async function finished(client: Client, name: string, args: Record<string, unknown> = {}) {
  const { structuredContent } = await client.callTool({ name, arguments: args });
  const { taskId } = structuredContent as { taskId: string };
  const { structuredContent: end } = await client.callTool({
    name: "durable_task_get",
    arguments: { taskId, waitMs: 20_000 },
  });
  return end as { status: string; result?: unknown; error?: { message: string } };
}

describe("many servers over one store", () => {
  test("a thousand servers with all tools cost little, and are let go with everything on them", async () => {
    const store = await scratchStore();
    const gone: WeakRef<McpServer>[] = [];
    const before = performance.now();
    for (let count = 0; count < 1_000; count += 1) {
      const mcp = new McpServer(info);
      equip(mcp, store, "http://127.0.0.1:1");
      gone.push(new WeakRef(mcp));
    }
    const each = (performance.now() - before) / 1_000;
    expect(each, "ms for each server").toBeLessThan(20);
    // What is referred to by a WeakRef lives until the turn has ended.
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    const left = gone.filter((ref) => ref.deref() !== undefined).length;
    expect(left).toBeLessThan(5);
  });

  test("two stores in one process know nothing of each other, though their servers have the same tools", async () => {
    const [one, two] = [await scratchStore(), await scratchStore()];
    const clients = await Promise.all(
      [one, two].map((store, index) => {
        const mcp = new McpServer(info);
        withTasks(asToolRegistrar(mcp), { store }).taskTool("who", { description: "Who." }, () => ({
          index,
        }));
        return clientOf(mcp);
      }),
    );
    for (const [index, client] of clients.entries()) {
      expect(await finished(client, "who")).toMatchObject({ status: "completed", result: { index } });
      const { structuredContent } = await client.callTool({ name: "durable_task_list", arguments: {} });
      expect((structuredContent as { tasks: unknown[] }).tasks).toHaveLength(1);
    }
  });

  test("attaching twice registers the tools once, and a tool of the server's own by such a name is an error", async () => {
    const store = await scratchStore();
    const mcp = new McpServer(info);
    withTasks(asToolRegistrar(mcp), { store });
    withTasks(asToolRegistrar(mcp), { store });
    withFileTransfer(asToolRegistrar(mcp), { store, publicUrl: "http://127.0.0.1:1" });
    expect((await (await clientOf(mcp)).listTools()).tools).toHaveLength(12);

    const own = new McpServerV1(info);
    own.registerTool("durable_task_get", {}, () => ({ content: [] }));
    expect(() => withTasks(asToolRegistrar(own), { store })).toThrow(
      "durable_task_get is already registered",
    );
  });

  test("another handler by a name that the store knows is an error, unless its kind has a name of its own", async () => {
    const store = await scratchStore();
    const attach = () => withTasks(asToolRegistrar(new McpServer(info)), { store });
    attach().taskTool("work", { description: "One." }, () => 1);
    expect(() => attach().taskTool("work", { description: "Two." }, () => 2)).toThrow(
      /another handler for 'work'/,
    );
    attach().taskTool("work", { description: "Two.", kind: "work of two" }, () => 2);
    attach().taskTool("work", { description: "One again." }, () => 1);
  });
});

test("with fileTasks a server has all sixteen tools, and their tasks are followed as all others", async () => {
  const store = await scratchStore();
  const attach = () => {
    const mcp = new McpServer(info);
    withFileTransfer(asToolRegistrar(mcp), { store, publicUrl: "http://127.0.0.1:1", fileTasks: true });
    return mcp;
  };
  attach();
  const client = await clientOf(attach());
  expect((await client.listTools()).tools).toHaveLength(16);
  const { structuredContent } = await client.callTool({
    name: "upload_create",
    arguments: { filename: "a", size: 3 },
  });
  const { handle } = structuredContent as { handle: string };
  await client.callTool({
    name: "upload_write",
    arguments: { handle, offset: 0, data: "YWJj", final: true },
  });
  expect(await finished(client, "file_checksum", { handle, algorithms: ["md5"] })).toMatchObject({
    status: "completed",
    result: { digests: { md5: "900150983cd24fb0d6963f7d28e17f72" } },
  });
});

describe("schemas that users bring along", () => {
  test.each([
    ["the members of a zod 4 object", { text: z.string(), times: z.number().default(2) }],
    ["a zod 4 object", z.object({ text: z.string(), times: z.number().default(2) })],
    ["the members of a zod 3 object", { text: zodV3.string(), times: zodV3.number().default(2) }],
    ["a zod 3 object", zodV3.object({ text: zodV3.string(), times: zodV3.number().default(2) })],
  ])("%s is listed, checked and has its defaults filled in", async (_name, inputSchema) => {
    const store = await scratchStore();
    const mcp = new McpServer(info);
    withTasks(asToolRegistrar(mcp), { store }).taskTool(
      "repeat",
      { description: "Repeats.", inputSchema },
      (args) => {
        const { text, times } = args as { text: string; times: number };
        return { text: text.repeat(times) };
      },
    );
    const client = await clientOf(mcp);
    const listed = (await client.listTools()).tools.find(({ name }) => name === "repeat");
    expect(listed?.inputSchema).toMatchObject({
      type: "object",
      properties: { text: { type: "string" }, times: { type: "number", default: 2 } },
      required: ["text"],
    });
    expect(await finished(client, "repeat", { text: "ab" })).toMatchObject({ result: { text: "abab" } });
    for (const [args, param] of [
      [{}, "text"],
      [{ text: "a", times: "b" }, "times"],
    ] as const)
      expect((await client.callTool({ name: "repeat", arguments: args })).structuredContent).toMatchObject({
        error: { code: "invalid_param", param },
      });
  });

  test("arguments and results have the types of the schemas", async () => {
    const tasks = withTasks(asToolRegistrar(new McpServer(info)), { store: await scratchStore() });
    tasks.taskTool(
      "typed",
      {
        description: "Typed.",
        inputSchema: { url: z.string(), depth: z.number().default(3), note: z.string().optional() },
        outputSchema: z.object({ pages: z.number() }),
      },
      // @ts-expect-error the result is no number
      async ({ url, depth, note }) => {
        const shown: [string, number, string | undefined] = [url, depth, note];
        return { pages: String(shown.length) };
      },
    );
    tasks.taskTool(
      "typed-v3",
      { description: "Typed.", inputSchema: { depth: zodV3.number().default(3) } },
      (args) => {
        const depth: number = args.depth;
        return depth;
      },
    );
  });

  test("what is no object's schema is refused at once", async () => {
    const tasks = withTasks(asToolRegistrar(new McpServer(info)), { store: await scratchStore() });
    const register = (inputSchema: never) => () =>
      tasks.taskTool("t", { description: "T.", inputSchema }, () => 1);
    expect(register(z.string() as never)).toThrow("inputSchema of 't' must be the schema of an object.");
    expect(register({ a: 5 } as never)).toThrow(/must be a zod object/);
    expect(register({ a: z.string(), b: zodV3.string() } as never)).toThrow(/mixes schemas/);
    expect(register({ idempotencyKey: z.string() } as never)).toThrow(/idempotencyKey is added by itself/);
  });

  test("a result that does not fit its schema, or is no JSON, fails the task and says why", async () => {
    const mcp = new McpServer(info);
    const tasks = withTasks(asToolRegistrar(mcp), { store: await scratchStore() });
    tasks.taskTool(
      "unfit",
      { description: "U.", outputSchema: { pages: z.number() } },
      () => ({ pages: "two" }) as never,
    );
    tasks.taskTool("no-json", { description: "N." }, () => ({ when: new Date(0) }));
    const client = await clientOf(mcp);
    expect((await finished(client, "unfit")).error?.message).toMatch(
      /does not fit the outputSchema.*pages: expected number/,
    );
    expect((await finished(client, "no-json")).error?.message).toMatch(/is not JSON/);
  });
});

describe("who is calling", () => {
  test("is named by principalOf, sees nothing of others, and gets its refusal with the envelope", async () => {
    const store = await scratchStore();
    const as = (principal: string) => {
      const mcp = new McpServer(info);
      const principalOf = () => {
        if (principal === "nobody") throw new TransferError("unauthorized", "Not you.");
        return principal;
      };
      withTasks(asToolRegistrar(mcp), { store, principalOf }).taskTool(
        "one",
        { description: "One." },
        () => 1,
      );
      const files = withFileTransfer(asToolRegistrar(mcp), {
        store,
        publicUrl: "http://127.0.0.1:1",
        principalOf,
      });
      return { mcp, files };
    };
    const [ann, bob, nobody] = [as("ann"), as("bob"), as("nobody")];
    const [annClient, bobClient, noClient] = await Promise.all(
      [ann, bob, nobody].map(({ mcp }) => clientOf(mcp)),
    );
    const { structuredContent } = (await annClient?.callTool({ name: "one", arguments: {} })) ?? {};
    const { taskId } = structuredContent as { taskId: string };
    const call = { name: "durable_task_get", arguments: { taskId } };
    expect((await annClient?.callTool(call))?.isError).toBeUndefined();
    expect((await bobClient?.callTool(call))?.structuredContent).toMatchObject({
      error: { code: "unknown_task" },
    });
    expect(await noClient?.callTool(call)).toMatchObject({
      isError: true,
      structuredContent: { status: "failed", error: { code: "unauthorized", message: "Not you." } },
    });
    // Whoever names callers keeps the bare door shut.
    const create = {
      method: "POST",
      headers: { "Tus-Resumable": "1.0.0", "Upload-Length": "1", Host: "127.0.0.1:1" },
    };
    expect((await ann.files.app.request("http://127.0.0.1:1/files", create)).status).toBe(401);
  });

  test("is, by default, the token's subject, else its client", async () => {
    const store = await scratchStore();
    const mcp = new McpServerV1(info);
    const files = withFileTransfer(asToolRegistrar(mcp), { store, publicUrl: "http://127.0.0.1:1" });
    const { transfer } = await store.transfers.create("ann", {
      filename: "a",
      contentType: null,
      metadata: null,
      sizeBytes: 0,
      sha256: null,
      idempotencyKey: null,
    });
    const auth = (authInfo: object) => ({ authInfo });
    const open = (context: unknown) => files.open(transfer.handle, context);
    await expect(open(auth({ clientId: "app", scopes: [], extra: { sub: "ann" } }))).resolves.toMatchObject(
      {},
    );
    await expect(
      open({ http: { authInfo: { clientId: "ann", scopes: [] } }, mcpReq: {} }),
    ).resolves.toMatchObject({});
    await expect(open(auth({ clientId: "bob", scopes: [] }))).rejects.toMatchObject({
      code: "unknown_handle",
    });
    await expect(open(undefined)).rejects.toMatchObject({ code: "unknown_handle" });
  });
});

describe("the HTTP side", () => {
  test("guards its own routes against foreign hosts and pages, and no other route of the app around it", async () => {
    const store = await scratchStore();
    const { app } = withFileTransfer(asToolRegistrar(new McpServer(info)), {
      store,
      publicUrl: "https://files.example/transfer",
      authenticate: () => "ann",
      allowedHosts: ["inner.example"],
    });
    app.get("/other", (c) => c.text("mine"));
    const create = (host: string, origin?: string) =>
      app.request(`http://${host}/files`, {
        method: "POST",
        headers: {
          Host: host,
          "Tus-Resumable": "1.0.0",
          "Upload-Length": "1",
          ...(origin && { Origin: origin }),
        },
      });
    const created = await create("files.example");
    expect(created.status).toBe(201);
    expect(created.headers.get("location")).toMatch(/^https:\/\/files\.example\/transfer\/files\//);
    expect((await create("inner.example")).status).toBe(201);
    const refused = await create("evil.example");
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({ code: "forbidden", retryable: false });
    expect((await create("files.example", "https://evil.example")).status).toBe(403);
    expect(
      (await app.request("http://evil.example/other", { headers: { Host: "evil.example" } })).status,
    ).toBe(200);
  });
});

describe("opening a store", () => {
  test("takes a folder alone, and refuses a URL with a sentence", async () => {
    await expect(openStore("postgres://u:p@db/x")).rejects.toThrow(
      "openStore takes a folder; stores behind URLs (postgres:)",
    );
    await expect(openStore({ dataDir: "s3://bucket" })).rejects.toThrow("(s3:)");
  });

  test("has the limits of a server where nothing is said", async () => {
    const store = await openStore(await tempDir());
    onTestFinished(() => store.close());
    expect(store.transfers.limits).toEqual({
      maxFileBytes: 2 ** 40,
      inlineChunkBytes: 262_144,
      inlineFileBytes: 4_194_304,
      uploadTtlMs: 86_400_000,
      fileTtlMs: null,
      downloadTtlMs: 3_600_000,
    });
    await Promise.all([store.close(), store.close()]);
  });
});
