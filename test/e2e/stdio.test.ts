/** `longshore stdio`, built, as desktop hosts start it. */
import { createHash, randomBytes } from "node:crypto";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { describe, expect, test } from "vitest";
import { useFolder } from "../support/server-process.ts";
import { type StdioHost, startBareHost, startHost } from "../support/stdio-host.ts";
import { coreDriver } from "../support/task-drivers.ts";
import { waitUntil } from "../support/wait-until.ts";

const folder = useFolder();
let count = 0;
const newDataDir = () => {
  count += 1;
  return `${folder.path}/data-${count}`;
};

async function createUpload(host: StdioHost, size: number): Promise<{ handle: string; url: string }> {
  const { handle, upload } = await host.call("upload_create", { filename: "a.bin", size });
  return { handle: String(handle), url: (upload as { put: string }).put };
}

describe.each(["v1", "v2"] as const)("a host with the %s client", (generation) => {
  test("has every tool, uploads over HTTP and reads the file back through the pipe", async () => {
    const host = await startHost(generation, newDataDir());
    const { tools } = await host.client.listTools();
    expect(tools).toHaveLength(16);
    const bytes = randomBytes(3_000_000);
    const { handle, url } = await createUpload(host, bytes.length);
    expect(new URL(url).hostname).toBe("127.0.0.1");
    expect((await fetch(url, { method: "PUT", body: new Uint8Array(bytes) })).status).toBe(200);
    expect(await host.call("upload_status", { handle })).toMatchObject({
      status: "complete",
      sha256: createHash("sha256").update(bytes).digest("hex"),
    });
    const read = await host.call("file_read", { handle, offset: 2_999_990, encoding: "base64" });
    expect(Buffer.from(String(read.data), "base64")).toEqual(bytes.subarray(2_999_990));
    expect(read.eof).toBe(true);
  });
});

test("a client of 2025-11-25 is offered core tasks with their list", async () => {
  const { client } = await startHost("v1", newDataDir());
  expect(client.getServerCapabilities()).toMatchObject({
    tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
  });
});

test("a client of 2025-11-25 drives core tasks through the pipe: one that completes, one that fails, one that is cancelled", async () => {
  const host = await startHost("v1", newDataDir());
  if (!(host.client instanceof ClientV1)) throw new Error("another client than asked for");
  const driver = coreDriver(host.client);
  const { handle, url } = await createUpload(host, 5);
  await fetch(url, { method: "PUT", body: "hello" });
  const done = await driver.run("file_checksum", { handle, algorithms: ["sha256"] });
  expect(done.status).toBe("completed");
  expect(done.result?.structuredContent).toMatchObject({
    result: { digests: { sha256: createHash("sha256").update("hello").digest("hex") } },
  });
  const failed = await driver.run("file_extract", { handle });
  expect(failed).toMatchObject({ status: "failed", result: { isError: true } });
  const large = await createUpload(host, 60_000_000);
  await fetch(large.url, { method: "PUT", body: new Uint8Array(60_000_000) });
  const cancelled = await driver.cancel("file_archive", { handles: [large.handle], format: "tar.gz" });
  expect(cancelled.status).toBe("cancelled");
});

test("tasks are seen by every host, and those of one that has gone are done by the next", async () => {
  const dataDir = newDataDir();
  const first = await startHost("v1", dataDir);
  const { handle, url } = await createUpload(first, 60_000_000);
  await fetch(url, { method: "PUT", body: new Uint8Array(60_000_000) });
  const { taskId } = await first.call("file_archive", { handles: [handle], format: "zip" });
  await first.close();
  const [second, third] = await Promise.all([startHost("v2", dataDir), startHost("v1", dataDir)]);
  for (const host of [second, third]) {
    let task = await host.call("durable_task_get", { taskId, waitMs: 20_000 });
    while (task.status === "working") task = await host.call("durable_task_get", { taskId, waitMs: 20_000 });
    expect(task).toMatchObject({ status: "completed", result: { handle: expect.stringMatching(/^fh_/) } });
  }
});

test("the port is taken again by the next start, so that URLs handed out before go on working", async () => {
  const dataDir = newDataDir();
  const first = await startHost("v2", dataDir);
  const { handle, url } = await createUpload(first, 4);
  await first.close();
  await expect(fetch(url)).rejects.toThrow();
  const second = await startHost("v1", dataDir);
  expect((await fetch(url, { method: "PUT", body: "abcd" })).status).toBe(200);
  expect(await second.call("file_read", { handle })).toMatchObject({ data: "abcd", eof: true });
});

test("two hosts on one data folder see the same files and tasks, each under a port of its own", async () => {
  const dataDir = newDataDir();
  const [one, two] = await Promise.all([startHost("v1", dataDir), startHost("v2", dataDir)]);
  const [a, b] = [await createUpload(one, 3), await createUpload(two, 3)];
  expect(new URL(a.url).port).not.toBe(new URL(b.url).port);
  await fetch(a.url, { method: "PUT", body: "one" });
  await fetch(b.url, { method: "PUT", body: "two" });
  for (const host of [one, two]) {
    expect(await host.call("file_read", { handle: a.handle })).toMatchObject({ data: "one" });
    expect(await host.call("file_read", { handle: b.handle })).toMatchObject({ data: "two" });
  }
  // Any of them takes what a URL of the other was handed out for.
  const moved = new URL(a.url);
  moved.port = new URL(b.url).port;
  expect((await fetch(moved, { method: "HEAD", headers: { "Tus-Resumable": "1.0.0" } })).status).toBe(200);
});

test("the largest chunk that the settings allow goes through the pipe, however large that is", async () => {
  const size = 12_000_000;
  const limits = ["--inline-chunk-bytes", String(size), "--inline-file-bytes", String(size)];
  const host = await startHost("v1", newDataDir(), limits);
  const { handle } = await host.call("upload_create", { filename: "a.bin", size });
  const bytes = randomBytes(size);
  const written = await host.call("upload_write", { handle, offset: 0, data: bytes.toString("base64") });
  expect(written).toMatchObject({ chunkSha256: createHash("sha256").update(bytes).digest("hex") });
  expect(await host.call("upload_status", { handle })).toMatchObject({ offset: size });
});

test("a message too long for any answer ends it, so that its host does not wait for one for ever", async () => {
  const host = startBareHost(newDataDir());
  host.send({ jsonrpc: "2.0", id: 1, method: "x".repeat(12 << 20) });
  expect(await host.exit).toBe(0);
  expect(host.stderr()).toContain("exceeded maximum size");
  expect(host.stderr()).toContain('"event":"stdio.stopped"');
});

test("nothing but the protocol goes to stdout, whatever comes in and however much is logged", async () => {
  const host = startBareHost(newDataDir());
  host.send("this is no JSON");
  const clientInfo = { name: "bare", version: "1" };
  host.send({
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo },
  });
  host.send({ jsonrpc: "2.0", method: "notifications/initialized" });
  host.send({
    jsonrpc: "2.0",
    id: 2,
    method: "tools/call",
    params: { name: "file_read", arguments: { handle: "/etc/passwd" } },
  });
  host.send({ jsonrpc: "2.0", id: 3, method: "no/such/method" });
  await waitUntil(() => host.stdout().split("\n").length > 3);
  host.child.stdin.end();
  expect(await host.exit).toBe(0);
  const messages = host
    .stdout()
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { jsonrpc: string; id: number });
  expect(messages.map(({ jsonrpc }) => jsonrpc)).toEqual(["2.0", "2.0", "2.0"]);
  expect(messages.map(({ id }) => id).sort()).toEqual([1, 2, 3]);
  expect(host.stderr()).toContain('"event":"stdio.started"');
  expect(host.stderr()).toContain('"event":"stdio.stopped"');
});

test("closing the pipe ends it with what a running write has sent kept", async () => {
  const dataDir = newDataDir();
  const host = await startHost("v2", dataDir);
  const { handle, url } = await createUpload(host, 10_000_000);
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const put = fetch(url, { method: "PUT", body: readable, duplex: "half" } as RequestInit).catch(() => null);
  await writer.write(new Uint8Array(2_000_000));
  await waitUntil(async () => Number((await host.call("upload_status", { handle })).offset) > 0);
  const before = performance.now();
  await host.close();
  expect(performance.now() - before, "ms to end, without being killed").toBeLessThan(15_000);
  await put;
  await writer.abort().catch(() => {});
  const next = await startHost("v1", dataDir);
  expect(await next.call("upload_status", { handle })).toMatchObject({
    status: "receiving",
    offset: 2_000_000,
  });
});

test("its port answers for tickets alone: nobody creates an upload there, or finds the tools", async () => {
  const host = await startHost("v1", newDataDir());
  const { origin } = new URL((await createUpload(host, 1)).url);
  const create = await fetch(`${origin}/files`, {
    method: "POST",
    headers: { "Tus-Resumable": "1.0.0", "Upload-Length": "1" },
  });
  expect(create.status).toBe(401);
  expect((await fetch(`${origin}/mcp`, { method: "POST" })).status).toBe(404);
  expect((await fetch(`${origin}/files/nothing`, { method: "HEAD" })).status).toBe(404);
});
