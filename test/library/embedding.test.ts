/** Servers of both SDKs with Longshore in them, in processes of their own, driven by the client of their SDK over stdio and HTTP. */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as StdioV2 } from "@modelcontextprotocol/client/stdio";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as StdioV1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as HttpV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const program = fileURLToPath(new URL("./programs/embedded-server.ts", import.meta.url));
type Facts = Record<string, unknown>;
interface Session {
  tools(): Promise<{ name: string; inputSchema: unknown; outputSchema?: unknown }[]>;
  call(name: string, args?: Facts): Promise<{ isError?: boolean; text: string; facts: Facts }>;
}

const cases = [
  ["v1", "stdio"],
  ["v1", "http"],
  ["v2", "stdio"],
  ["v2", "http"],
] as const;

async function startHttp(generation: string, dataDir: string, ends: End[]): Promise<URL> {
  const child: ChildProcess = spawn(process.execPath, [program, generation, "http", dataDir], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  ends.push(async () => {
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    expect(await exited).toEqual([0, null]);
  });
  if (child.stdout === null) throw new Error("no output");
  for await (const line of createInterface({ input: child.stdout })) return new URL(line);
  throw new Error("the server ended without a word");
}

type End = () => Promise<unknown>;

/** `ends` is given what ends it all again, in its order. */
async function connect(generation: "v1" | "v2", transport: "stdio" | "http", ends: End[]): Promise<Session> {
  const dataDir = await mkdtemp(path.join(os.tmpdir(), "longshore-embedding-"));
  const stdio = { command: process.execPath, args: [program, generation, "stdio", dataDir] };
  const client =
    generation === "v1"
      ? new ClientV1({ name: "c", version: "1" })
      : new ClientV2({ name: "c", version: "1" }, { versionNegotiation: { mode: "auto" } });
  ends.push(() => client.close());
  const url = transport === "http" ? await startHttp(generation, dataDir, ends) : null;
  ends.push(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5 }));
  if (client instanceof ClientV1)
    await client.connect(url === null ? new StdioV1(stdio) : (new HttpV1(url) as never));
  else await client.connect(url === null ? new StdioV2(stdio) : new HttpV2(url));
  return {
    tools: async () => (await client.listTools()).tools,
    async call(name, args = {}) {
      const result = await client.callTool({ name, arguments: args });
      const [content] = result.content as { text: string }[];
      return {
        isError: result.isError === true,
        text: content?.text ?? "",
        facts: (result.structuredContent ?? {}) as Facts,
      };
    },
  };
}

/** Follows a task until nothing more comes of it by itself. */
async function follow({ call }: Session, taskId: unknown): Promise<Facts> {
  for (;;) {
    const { facts } = await call("durable_task_get", { taskId, waitMs: 20_000 });
    if (facts.status !== "working" && facts.cancelRequested !== true) return facts;
  }
}

async function upload({ call }: Session, text: string): Promise<string> {
  const { facts } = await call("upload_create", { filename: "lines.txt", size: text.length });
  const { put } = facts.upload as { put: string };
  expect(new URL(put).pathname).toMatch(/^\/transfer\/files\//);
  expect((await fetch(put, { method: "PUT", body: text })).status).toBe(200);
  return String(facts.handle);
}

describe.each(cases)("a server of the %s SDK over %s", (generation, transport) => {
  let session: Session;
  const ends: End[] = [];
  beforeAll(async () => {
    session = await connect(generation, transport, ends);
  });
  afterAll(async () => {
    for (const end of ends) await end();
  });

  test("lists its own tools beside ours, with the schemas that they were given", async () => {
    const tools = await session.tools();
    expect(tools.map(({ name }) => name).sort()).toEqual([
      "durable_task_cancel",
      "durable_task_get",
      "durable_task_list",
      "durable_task_respond",
      "file_delete",
      "file_download",
      "file_list",
      "file_read",
      "hash-file",
      "upload_create",
      "upload_resume",
      "upload_status",
      "upload_write",
      "wait-for-ever",
      "write-report",
    ]);
    const report = tools.find(({ name }) => name === "write-report");
    expect(report?.inputSchema).toMatchObject({
      type: "object",
      properties: { handle: { type: "string" }, copies: { type: "number", default: 2 }, idempotencyKey: {} },
      required: ["handle"],
    });
    expect(report?.outputSchema).toMatchObject({
      type: "object",
      required: ["status"],
      properties: { taskId: {}, result: { properties: { report: { type: "string" } } } },
    });
    expect(JSON.stringify(tools)).not.toContain("$ref");
  });

  test("an upload is read by a tool of the server's own and by a task, which asks and stores its report", async () => {
    const text = "one\ntwo\nthree\n";
    const handle = await upload(session, text);
    expect(await session.call("hash-file", { handle })).toMatchObject({
      isError: false,
      text: createHash("md5").update(text).digest("hex"),
    });
    expect((await session.call("hash-file", { handle: "/home/me/lines.txt" })).facts).toMatchObject({
      status: "failed",
      error: { code: "client_path_not_reachable" },
    });

    const { facts } = await session.call("write-report", { handle });
    expect(facts).toMatchObject({
      status: "working",
      taskId: expect.any(String),
      nextStep: expect.any(String),
    });
    const asked = await follow(session, facts.taskId);
    expect(asked).toMatchObject({
      status: "input_required",
      progress: { message: "3 lines", fraction: 0.5 },
      inputRequest: { prompt: "Write it?", choices: ["yes", "no"] },
    });
    await session.call("durable_task_respond", { taskId: facts.taskId, response: "yes" });
    const done = await follow(session, facts.taskId);
    expect(done).toMatchObject({ status: "completed", result: { copies: 2, mood: "calm" } });
    const { report } = done.result as { report: string };
    const read = await session.call("file_read", { handle: report });
    expect(read.facts).toMatchObject({ data: "3 lines\n3 lines\n", eof: true });
  });

  test("a task that fails keeps the code of its error, and a wrong argument is refused by its name", async () => {
    const handle = await upload(session, "one\n");
    const { facts } = await session.call("write-report", { handle, copies: 1 });
    await follow(session, facts.taskId);
    await session.call("durable_task_respond", { taskId: facts.taskId, response: "no" });
    expect(await follow(session, facts.taskId)).toMatchObject({
      status: "failed",
      error: { code: "forbidden", message: "Somebody said no." },
    });
    const wrong = await session.call("write-report", { handle, copies: "many" });
    expect(wrong).toMatchObject({
      isError: true,
      facts: { status: "failed", error: { code: "invalid_param", param: "copies" } },
    });
    const absent = await session.call("write-report");
    expect(absent.facts).toMatchObject({ error: { param: "handle", message: "handle: It is required." } });
  });

  test("a task is cancelled, and the same idempotencyKey gives the same task", async () => {
    const first = await session.call("wait-for-ever", { idempotencyKey: "k" });
    const again = await session.call("wait-for-ever", { idempotencyKey: "k" });
    expect(again.facts.taskId).toBe(first.facts.taskId);
    await session.call("durable_task_cancel", { taskId: first.facts.taskId });
    expect(await follow(session, first.facts.taskId)).toMatchObject({ status: "cancelled" });
    const { facts } = await session.call("durable_task_list");
    const waiting = (facts.tasks as Facts[]).filter(({ kind }) => kind === "wait-for-ever");
    expect(waiting).toMatchObject([{ taskId: first.facts.taskId, status: "cancelled" }]);
  });
});
