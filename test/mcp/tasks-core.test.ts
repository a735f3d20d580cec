/** Core tasks of 2025-11-25 on the wire, over HTTP without sessions. */

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { InMemoryTransport, Server } from "@modelcontextprotocol/server";
import { describe, expect, onTestFinished, test } from "vitest";
import { TransferError } from "../../src/errors.ts";
import { serveCoreTasks } from "../../src/mcp/task-core.ts";
import { createLinks } from "../../src/transfer/links.ts";
import { openTestStore } from "../support/engine.ts";
import { legacy } from "../support/mcp-requests.ts";
import { startMcpServer, type TestServerOptions } from "../support/mcp-server.ts";
import { jobKinds, jobTools } from "../support/task-jobs.ts";

async function open(endpoint: TestServerOptions["endpoint"] = {}, kinds = jobKinds) {
  const { url, tasks } = await startMcpServer({ endpoint: { moreTools: jobTools, ...endpoint }, kinds });
  const start = (name: string, args: object = {}, task: object = {}) =>
    legacy(url, "tools/call", { name, arguments: args, task });
  return { url, tasks, start };
}

const initialize = {
  protocolVersion: "2025-11-25",
  capabilities: {},
  clientInfo: { name: "test", version: "1" },
};

describe("what the server can do", () => {
  test("is told, without a list where callers are not told apart", async () => {
    const { url } = await open();
    const { result } = await legacy(url, "initialize", initialize);
    expect(result.capabilities.tasks).toEqual({ cancel: {}, requests: { tools: { call: {} } } });
    expect(result.capabilities).not.toHaveProperty("extensions");
    expect((await legacy(url, "tasks/list")).error?.code).toBe(-32_601);
  });

  test("is told with a list where they are", async () => {
    const { url, start } = await open({ separateCallers: true });
    const { result } = await legacy(url, "initialize", initialize);
    expect(result.capabilities.tasks).toHaveProperty("list");
    const { task } = (await start("job_wait")).result;
    const { tasks } = (await legacy(url, "tasks/list")).result;
    expect(tasks).toMatchObject([{ taskId: task.taskId, status: "working" }]);
    expect((await legacy(url, "tasks/list", { cursor: "x" })).error?.code).toBe(-32_602);
  });

  test("tools say whether they can be tasks, and those that cannot refuse to", async () => {
    const { url, start } = await open();
    const { tools } = (await legacy(url, "tools/list")).result;
    for (const { name, execution } of tools)
      expect(execution, name).toEqual(name.startsWith("job_") ? { taskSupport: "optional" } : undefined);
    expect((await start("file_list")).error?.code).toBe(-32_601);
  });
});

describe("a task", () => {
  test("is asked for with params.task, and runs without limit", async () => {
    const { url, start } = await open();
    const { result } = await start("job_wait", {}, { ttl: 60_000 });
    expect(result).toEqual({
      task: {
        taskId: expect.stringMatching(/^task_/),
        status: "working",
        createdAt: expect.any(String),
        lastUpdatedAt: expect.any(String),
        ttl: null,
        pollInterval: expect.any(Number),
      },
    });
    const { taskId } = result.task;
    expect((await legacy(url, "tasks/get", { taskId })).result).toMatchObject({ taskId, status: "working" });
  });

  test("is kept as long as was asked for", async () => {
    const { url, start } = await open();
    const { taskId } = (await start("job_count", { to: 1 }, { ttl: 60_000 })).result.task;
    await legacy(url, "tasks/result", { taskId });
    const { ttl } = (await legacy(url, "tasks/get", { taskId })).result;
    expect(ttl).toBeGreaterThanOrEqual(60_000);
    expect(ttl).toBeLessThan(120_000);
  });

  test("gives the result of the call with its related task, and blocks until it is there", async () => {
    const { url, start } = await open();
    const { taskId } = (await start("job_ask")).result.task;
    const blocked = legacy(url, "tasks/result", { taskId });
    const respond = { name: "durable_task_respond", arguments: { taskId, response: "yes" } };
    for (;;) {
      const { status, statusMessage } = (await legacy(url, "tasks/get", { taskId })).result;
      if (status !== "input_required") continue;
      expect(statusMessage).toContain(`Call durable_task_respond with taskId "${taskId}"`);
      break;
    }
    await legacy(url, "tools/call", respond);
    expect((await blocked).result).toMatchObject({
      _meta: { "io.modelcontextprotocol/related-task": { taskId } },
      structuredContent: { status: "completed", result: { answer: "yes" } },
    });
  });

  test("whose job failed is failed, with an isError result", async () => {
    const { url, start } = await open();
    const { taskId } = (await start("job_fail")).result.task;
    const { result } = await legacy(url, "tasks/result", { taskId });
    expect(result).toMatchObject({ isError: true, structuredContent: { error: { code: "task_failed" } } });
    expect((await legacy(url, "tasks/get", { taskId })).result).toMatchObject({
      status: "failed",
      statusMessage: "The job has failed in its own words.",
    });
  });

  test("is not made where the arguments are wrong: a JSON-RPC error says so by the envelope", async () => {
    const { start } = await open();
    const { error } = await start("job_count", { to: "three" });
    expect(error).toMatchObject({ code: -32_602, data: { code: "invalid_param", param: "to" } });
  });

  test("that is cancelled is so at once and for good, though its work still stops, and cannot be so twice", async () => {
    const begun = Promise.withResolvers<void>();
    const stubborn = Promise.withResolvers<void>();
    const kinds = jobKinds.map((one) =>
      one.kind === "job_wait"
        ? {
            ...one,
            handler: () => {
              begun.resolve();
              return stubborn.promise.then(() => ({ done: true }));
            },
          }
        : one,
    );
    const { url, tasks, start } = await open({}, kinds);
    const { taskId } = (await start("job_wait")).result.task;
    await begun.promise;
    expect((await legacy(url, "tasks/cancel", { taskId })).result).toMatchObject({ status: "cancelled" });
    expect((await tasks.get("local", taskId)).endedAt).toBeNull();
    expect((await legacy(url, "tasks/get", { taskId })).result.status).toBe("cancelled");
    const { result } = await legacy(url, "tasks/result", { taskId });
    expect(result).toMatchObject({ isError: true, structuredContent: { status: "cancelled" } });
    expect((await legacy(url, "tasks/cancel", { taskId })).error?.code).toBe(-32_602);
    stubborn.resolve();
    await tasks.get("local", taskId, { waitMs: 20_000 });
    expect((await legacy(url, "tasks/get", { taskId })).result.status).toBe("cancelled");
  });

  test("that has ended cannot be cancelled", async () => {
    const { url, start } = await open();
    const { taskId } = (await start("job_count", { to: 1 })).result.task;
    await legacy(url, "tasks/result", { taskId });
    const { error } = await legacy(url, "tasks/cancel", { taskId });
    expect(error).toMatchObject({ code: -32_602, message: expect.stringContaining("completed") });
  });

  test("that broke the protocol gives the JSON-RPC error of its job", async () => {
    const extra = { jsonRpcCode: -32_050 };
    const kinds = jobKinds.map((one) => ({
      ...one,
      handler: async () => {
        throw new TransferError("internal_error", "The disk is gone.", { extra });
      },
    }));
    const { url, start } = await open({}, kinds);
    const { taskId } = (await start("job_wait")).result.task;
    const { error } = await legacy(url, "tasks/result", { taskId });
    expect(error).toMatchObject({ code: -32_050, message: "The disk is gone." });
  });
});

test("a wait for the result has an end: the client is told that the task goes on", async () => {
  const { transfers: engine, tasks } = await openTestStore();
  for (const kind of jobKinds) tasks.register(kind);
  const server = new Server(
    { name: "s", version: "1" },
    { capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } } },
  );
  const links = createLinks("http://127.0.0.1:8484");
  serveCoreTasks(
    server,
    ({ mcpReq }, work) =>
      work({ principal: "local", requestId: "r", signal: mcpReq.signal, engine, tasks, links }),
    { list: false, resultWaitMs: 100, questions: null },
  );
  const client = new Client({ name: "c", version: "1" });
  const [serverEnd, clientEnd] = InMemoryTransport.createLinkedPair();
  await server.connect(serverEnd);
  await client.connect(clientEnd as unknown as Transport);
  onTestFinished(() => client.close());
  const { task } = await tasks.start("local", { kind: "job_wait", args: {} });
  const result = client.experimental.tasks.getTaskResult(task.taskId, CallToolResultSchema);
  await expect(result).rejects.toMatchObject({
    code: -32_603,
    data: { taskId: task.taskId, status: "working", retryable: true },
  });
});
