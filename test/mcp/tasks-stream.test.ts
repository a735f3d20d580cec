/**
 * Core tasks of 2025-11-25 where both sides send requests on one connection, as on stdio: questions reach the client as
 * `elicitation/create`, and tasks can be listed.
 */

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  CallToolResultSchema,
  ElicitRequestSchema,
  type ElicitResult,
} from "@modelcontextprotocol/sdk/types.js";
import { InMemoryTransport as ServerEnd } from "@modelcontextprotocol/server";
import { describe, expect, onTestFinished, test } from "vitest";
import { toolServerFactory } from "../../src/mcp/tool-server.ts";
import { durableTaskTools } from "../../src/mcp/tools/durable-task-tools.ts";
import { createLinks } from "../../src/transfer/links.ts";
import { openTestStore } from "../support/engine.ts";
import { coreDriver } from "../support/task-drivers.ts";
import { jobKinds, jobTools } from "../support/task-jobs.ts";

type Answer = (params: {
  message: string;
  _meta?: object | undefined;
}) => Promise<ElicitResult> | ElicitResult;

async function open(answer: Answer | null) {
  const { transfers: engine, tasks } = await openTestStore();
  for (const kind of jobKinds) tasks.register(kind);
  const build = toolServerFactory({
    serverInfo: { name: "longshore", version: "1" },
    tools: [...jobTools, ...durableTaskTools],
    tasks: true,
    separateCallers: false,
    connection: "stream",
  });
  const server = build({
    era: "legacy",
    contextOf: ({ mcpReq }) => ({
      principal: "local",
      requestId: "r",
      signal: mcpReq.signal,
      engine,
      tasks,
      links: createLinks("http://127.0.0.1:8484"),
    }),
    run: (call) => call(),
    onFault: (error) => {
      throw error;
    },
  });
  const client = new Client(
    { name: "test", version: "1" },
    { capabilities: answer === null ? {} : { elicitation: {} } },
  );
  if (answer !== null) client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer(params));
  const [serverEnd, clientEnd] = ServerEnd.createLinkedPair();
  await server.connect(serverEnd);
  await client.connect(clientEnd as unknown as Transport);
  onTestFinished(() => client.close());
  await client.listTools();
  return { client, tasks };
}

const started = async (client: Client, name: string): Promise<string> => {
  const stream = client.experimental.tasks.callToolStream({ name, arguments: {} }, CallToolResultSchema, {
    task: {},
  });
  for await (const message of stream) if (message.type === "taskCreated") return message.task.taskId;
  throw new Error("no task was created");
};

test("a client that elicits is asked while it waits for the result, once, with the related task", async () => {
  const asked: { message: string; _meta?: object | undefined }[] = [];
  const { client } = await open((params) => {
    asked.push(params);
    return { action: "accept", content: { answer: "no" } };
  });
  const { status, result } = await coreDriver(client, true).run("job_ask", {}, "no");
  expect(status).toBe("completed");
  expect(result?.structuredContent).toMatchObject({ result: { answer: "no" } });
  const { taskId } = (result?.structuredContent ?? {}) as { taskId?: string };
  expect(asked).toMatchObject([
    { message: "Shall it go on?", _meta: { "io.modelcontextprotocol/related-task": { taskId } } },
  ]);
});

test.each(["decline", "cancel"] as const)(
  "a client that answers with %s refuses it to the job",
  async (action) => {
    const { client } = await open(() => ({ action }));
    const { result } = await coreDriver(client, true).run("job_ask", {});
    expect(result?.structuredContent).toMatchObject({ status: "completed", result: { refused: action } });
  },
);

test("a client that does not elicit is not asked, and answers by the tool", async () => {
  const { client } = await open(null);
  const { result } = await coreDriver(client).run("job_ask", {}, "yes");
  expect(result?.structuredContent).toMatchObject({ result: { answer: "yes" } });
});

test("two that wait for one task put its question once; answered otherwise, it is taken back", async () => {
  let asked = 0;
  const takenBack = Promise.withResolvers<void>();
  const { client, tasks } = await open(() => {
    asked += 1;
    return new Promise<ElicitResult>((resolve) => {
      void takenBack.promise.then(() => resolve({ action: "cancel" }));
    });
  });
  const taskId = await started(client, "job_ask");
  const results = [1, 2].map(() => client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema));
  await expect.poll(() => asked).toBe(1);
  await tasks.respond("local", taskId, null, { action: "accept", value: "yes" });
  for (const result of await Promise.all(results))
    expect(result.structuredContent).toMatchObject({ result: { answer: "yes" } });
  takenBack.resolve();
  expect(asked).toBe(1);
});

describe("the list", () => {
  test("is offered, since there is one caller only", async () => {
    const { client } = await open(null);
    const taskId = await started(client, "job_wait");
    const { tasks } = await client.experimental.tasks.listTasks();
    expect(tasks).toMatchObject([{ taskId, status: "working" }]);
  });
});
