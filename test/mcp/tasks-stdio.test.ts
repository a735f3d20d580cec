/**
 * Tasks that ask, through the pipes of a child process that runs the endpoint of `longshore stdio`: by core tasks of 2025-11-25, whose
 * questions reach the client as requests, by the extension of 2026-07-28, and by the tools alone.
 */

import { fileURLToPath } from "node:url";
import { Client as ClientV2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as StdioV2 } from "@modelcontextprotocol/client/stdio";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as StdioV1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import {
  CallToolResultSchema,
  type ElicitRequest,
  ElicitRequestSchema,
  type ElicitResult,
} from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, onTestFinished, test } from "vitest";
import { cleanEnv } from "../support/built-server.ts";
import { coreDriver, extensionCapabilities, extensionDriver, facadeDriver } from "../support/task-drivers.ts";
import { tempDir } from "../support/temp-dir.ts";

const program = fileURLToPath(new URL("./programs/stdio-jobs.ts", import.meta.url));

const startedFrom = (dataDir: string) => ({
  command: process.execPath,
  args: [program, dataDir],
  env: cleanEnv() as Record<string, string>,
});

type Asked = ElicitRequest["params"];
type Answer = (asked: Asked, signal: AbortSignal) => Promise<ElicitResult> | ElicitResult;

/** `answer`: null for a client that cannot be asked. */
async function hostV1(dataDir: string, answer: Answer | null) {
  const transport = new StdioV1(startedFrom(dataDir));
  const capabilities = answer === null ? {} : { elicitation: {} };
  const client = new ClientV1({ name: "host", version: "1" }, { capabilities });
  if (answer !== null) {
    client.setRequestHandler(ElicitRequestSchema, ({ params }, { signal }) => answer(params, signal));
  }
  await client.connect(transport);
  onTestFinished(() => client.close());
  // As hosts do; from then on the client knows which tools are for tasks.
  await client.listTools();
  return { client, tasks: client.experimental.tasks, pid: transport.pid ?? -1 };
}

async function hostV2(transport: StdioV2, capabilities: object = {}): Promise<ClientV2> {
  const options = { capabilities, versionNegotiation: { mode: "auto" } } as const;
  const client = new ClientV2({ name: "host", version: "1" }, options);
  await client.connect(transport);
  onTestFinished(() => client.close());
  await client.listTools();
  return client;
}

/** Sends requests past the client, which would not give a task's result through, on the pipe that it has. */
function dispatchThrough(transport: StdioV2): Parameters<typeof extensionDriver>[1] {
  const waiting = new Map<unknown, (answer: Record<string, unknown>) => void>();
  const toClient = transport.onmessage;
  transport.onmessage = (message) => {
    const answer = message as Record<string, unknown>;
    const resolve = waiting.get(answer.id);
    if (resolve === undefined) toClient?.(message);
    else resolve(answer);
  };
  return async (request) => {
    const id = `past the client ${waiting.size}`;
    const { promise, resolve } = Promise.withResolvers<Record<string, unknown>>();
    waiting.set(id, resolve);
    await transport.send({ jsonrpc: "2.0", id, ...(request as { method: string }) });
    const { result, error } = await promise;
    return (error === undefined ? { kind: "result", result } : { kind: "error", error }) as never;
  };
}

async function started({ tasks }: Awaited<ReturnType<typeof hostV1>>, name: string): Promise<string> {
  const stream = tasks.callToolStream({ name, arguments: {} }, CallToolResultSchema, {
    task: { ttl: 60_000 },
  });
  for await (const message of stream) if (message.type === "taskCreated") return message.task.taskId;
  throw new Error("no task was created");
}

describe("by core tasks of 2025-11-25", () => {
  test("a task that asks half-way is answered by the client that waits for its result, and completes", async () => {
    const asked: Asked[] = [];
    const seen: string[] = [];
    const host = await hostV1(await tempDir(), async (params) => {
      asked.push(params);
      const { status, statusMessage } = await host.tasks.getTask(taskId);
      seen.push(status, String(statusMessage));
      return { action: "accept", content: { answer: "yes" } };
    });
    const taskId = await started(host, "job_halfway");
    const result = await host.tasks.getTaskResult(taskId, CallToolResultSchema);
    const related = { "io.modelcontextprotocol/related-task": { taskId } };
    expect(asked).toMatchObject([
      {
        message: "Shall the rest follow?",
        requestedSchema: { properties: { answer: { enum: ["yes", "no"] } }, required: ["answer"] },
        _meta: related,
      },
    ]);
    expect(seen).toEqual(["input_required", expect.stringContaining("Shall the rest follow?")]);
    expect(result).toMatchObject({
      structuredContent: {
        taskId,
        status: "completed",
        result: { before: "done", asked: { answer: "yes" }, after: "done" },
      },
      _meta: related,
    });
    expect((await host.tasks.getTask(taskId)).status).toBe("completed");
  });

  test.each(["decline", "cancel"] as const)(
    "a client that answers with %s refuses the question, and the task goes on without",
    async (action) => {
      const { client } = await hostV1(await tempDir(), () => ({ action }));
      const { status, result } = await coreDriver(client, true).run("job_halfway", {});
      expect(status).toBe("completed");
      expect(result?.structuredContent).toMatchObject({
        result: { asked: { refused: action }, after: "done" },
      });
    },
  );

  test("a client that cannot be asked sees that input is required, and answers by the tool", async () => {
    const { client } = await hostV1(await tempDir(), null);
    const { status, result } = await coreDriver(client).run("job_halfway", {}, "no");
    expect(status).toBe("completed");
    expect(result?.structuredContent).toMatchObject({ result: { asked: { answer: "no" }, after: "done" } });
  });

  test("a task that is cancelled while it asks ends cancelled, and its question is taken back", async () => {
    const put = Promise.withResolvers<void>();
    const takenBack = Promise.withResolvers<void>();
    const host = await hostV1(await tempDir(), async (_asked, signal) => {
      put.resolve();
      signal.addEventListener("abort", () => takenBack.resolve());
      await takenBack.promise;
      return { action: "cancel" };
    });
    const taskId = await started(host, "job_halfway");
    const result = host.tasks.getTaskResult(taskId, CallToolResultSchema);
    await put.promise;
    expect(await host.tasks.cancelTask(taskId)).toMatchObject({ taskId, status: "cancelled" });
    await takenBack.promise;
    expect((await result).structuredContent).toMatchObject({ taskId, status: "cancelled" });
    expect((await host.tasks.getTask(taskId)).status).toBe("cancelled");
  });

  test("a process that is killed while its question is put leaves it to the next, which puts it again", async () => {
    const dataDir = await tempDir();
    const put = Promise.withResolvers<void>();
    const first = await hostV1(dataDir, () => {
      put.resolve();
      return new Promise(() => {});
    });
    const taskId = await started(first, "job_halfway");
    const broken = first.tasks.getTaskResult(taskId, CallToolResultSchema).catch(() => "broken off");
    await put.promise;
    process.kill(first.pid, "SIGKILL");
    expect(await broken).toBe("broken off");

    const prompts: string[] = [];
    const second = await hostV1(dataDir, ({ message }) => {
      prompts.push(message);
      return { action: "accept", content: { answer: "no" } };
    });
    const { structuredContent } = await second.tasks.getTaskResult(taskId, CallToolResultSchema);
    expect(structuredContent).toMatchObject({
      taskId,
      status: "completed",
      result: { asked: { answer: "no" } },
    });
    expect(prompts).toEqual(["Shall the rest follow?"]);
  });
});

describe.each([
  ["a client of 2025-11-25", async (dataDir: string) => (await hostV1(dataDir, null)).client],
  [
    "a client of 2026-07-28 without the extension",
    (dataDir: string) => hostV2(new StdioV2(startedFrom(dataDir))),
  ],
] as const)("by the tools alone, %s", (_name, hostOf) => {
  test("finds the question with durable_task_get, answers with durable_task_respond, and reads the result", async () => {
    const client = await hostOf(await tempDir());
    const { status, result } = await facadeDriver(client).run("job_halfway", {}, "yes");
    expect(status).toBe("completed");
    expect(result?.structuredContent).toMatchObject({
      progress: { message: "Half is done", fraction: 0.5 },
      result: { before: "done", asked: { answer: "yes" }, after: "done" },
    });
  });

  test("cancels a task that asks", async () => {
    const client = await hostOf(await tempDir());
    const call = async (name: string, args: object) =>
      (await client.callTool({ name, arguments: { ...args } })).structuredContent as Record<string, unknown>;
    const { taskId } = await call("job_halfway", {});
    const get = () => call("durable_task_get", { taskId, waitMs: 20_000 });
    while ((await get()).status !== "input_required");
    await call("durable_task_cancel", { taskId });
    let task = await get();
    while (task.cancelRequested === true) task = await get();
    expect(task).toMatchObject({ taskId, status: "cancelled" });
  });
});

describe("by the extension of 2026-07-28", () => {
  test("a task that asks half-way is answered by tasks/update, and completes", async () => {
    const transport = new StdioV2(startedFrom(await tempDir()));
    const client = await hostV2(transport, extensionCapabilities);
    const { status, result } = await extensionDriver(client, dispatchThrough(transport)).run(
      "job_halfway",
      {},
      "yes",
    );
    expect(status).toBe("completed");
    expect(result?.structuredContent).toMatchObject({
      status: "completed",
      result: { before: "done", asked: { answer: "yes" }, after: "done" },
    });
  });
});
