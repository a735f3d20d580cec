/** docs/embedding.md: every block of code compiles, and the servers in it do what the page says. */
import { execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Client as ClientV2, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { cleanEnv, follow } from "../support/built-server.ts";
import { freePort } from "../support/free-port.ts";
import { codeBlocks, page } from "../support/markdown.ts";
import { waitUntil } from "../support/wait-until.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const markdown = page("docs/embedding.md");
const blocks = codeBlocks(markdown, "ts");

/** What the pieces that are no programs of their own go by. */
const prelude = `
import { McpServer } from "@modelcontextprotocol/server";
import { asToolRegistrar, openStore, type PrincipalOf, toolError, TransferError, withFileTransfer, withTasks } from "longshore";
import * as z from "zod";
declare function charge(order: string, options: { idempotencyKey: string }): Promise<string>;
const store = await openStore("./storage");
const mcp = new McpServer({ name: "s", version: "1" });
const registrar = asToolRegistrar(mcp);
const tasks = withTasks(registrar, { store });
const files = withFileTransfer(registrar, { store, publicUrl: "http://127.0.0.1:3000" });
void [charge, tasks, files, z, toolError, TransferError];
export type Unused = PrincipalOf;
`;

// Within the repository, so that the package is found by its name.
let folder = "";
beforeAll(() => {
  mkdirSync(path.join(root, "coverage"), { recursive: true });
  folder = mkdtempSync(path.join(root, "coverage/embedding-"));
  for (const [index, block] of blocks.entries())
    writeFileSync(
      path.join(folder, `block-${index}.ts`),
      /^import /m.test(block) ? block : `${prelude}{\n${block}}\n`,
    );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Facts = Record<string, unknown>;
const fileOf = (text: string) =>
  path.join(folder, `block-${blocks.findIndex((block) => block.includes(text))}.ts`);

test("every block compiles under the strictness of this project", async () => {
  expect(blocks.length).toBeGreaterThan(8);
  const config = {
    extends: "../../tsconfig.json",
    compilerOptions: { noUnusedLocals: false },
    include: ["*.ts"],
    exclude: [],
  };
  writeFileSync(path.join(folder, "tsconfig.json"), JSON.stringify(config));
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [path.join(root, "node_modules/typescript/bin/tsc"), "-p", folder],
    { cwd: root },
  ).catch((error: { stdout: string }) => error);
  expect(stdout).toBe("");
});

describe("the server on stdio", () => {
  async function start(file: string) {
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [file],
      cwd: folder,
      env: cleanEnv() as Record<string, string>,
    });
    const client = new ClientV1({ name: "c", version: "1" });
    await client.connect(transport);
    onTestFinished(() => client.close());
    const call = async (name: string, args: Facts) => client.callTool({ name, arguments: args });
    return { client, call };
  }
  const urls = ["http://a.example/", "http://b.example/long"];

  test("answers only in the end, before", async () => {
    const { call } = await start(path.join(folder, "block-0.ts"));
    const { content } = await call("crawl-site", { urls });
    expect(JSON.parse((content as { text: string }[])[0]?.text ?? "")).toHaveLength(2);
  });

  test("answers at once, asks, and stores its report, afterwards", async () => {
    const { call } = await start(path.join(folder, "block-1.ts"));
    const started = (await call("crawl-site", { urls })).structuredContent as Facts;
    expect(started).toMatchObject({ status: "working" });
    const { taskId } = started;
    const wait = async () =>
      (await call("durable_task_get", { taskId, waitMs: 20_000 })).structuredContent as Facts;
    expect(await wait()).toMatchObject({
      status: "input_required",
      inputRequest: { choices: ["yes", "no"] },
    });
    await call("durable_task_respond", { taskId, response: "yes" });
    let done = await wait();
    while (done.status === "working") done = await wait();
    expect(done).toMatchObject({ status: "completed", result: { pages: 2 } });
    const { report } = done.result as { report: string };
    const { url } = (await call("file_download", { handle: report })).structuredContent as { url: string };
    expect(await (await fetch(url)).json()).toMatchObject([{ url: urls[0] }, { url: urls[1] }]);
  });
});

test("the server over HTTP counts the bytes of an upload in a task", async () => {
  const port = await freePort();
  const child = spawn(process.execPath, [fileOf("createMcpHandler(() =>")], {
    cwd: folder,
    env: cleanEnv({ PORT: String(port) }),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const running = follow(child);
  const url = new URL(`http://127.0.0.1:${port}/mcp`);
  await waitUntil(async () => {
    expect(running.stderr()).toBe("");
    return fetch(url).then(
      () => true,
      () => false,
    );
  });
  const client = new ClientV2({ name: "c", version: "1" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(url));
  onTestFinished(() => client.close());
  const call = async (name: string, args: Facts) =>
    (await client.callTool({ name, arguments: args })).structuredContent as Facts;
  const { handle, upload } = await call("upload_create", { filename: "a", size: 12_345 });
  expect(
    (await fetch((upload as { put: string }).put, { method: "PUT", body: new Uint8Array(12_345) })).status,
  ).toBe(200);
  const { taskId } = await call("count-bytes", { handle });
  expect(await call("durable_task_get", { taskId, waitMs: 20_000 })).toMatchObject({
    status: "completed",
    result: { bytes: 12_345 },
  });
});
