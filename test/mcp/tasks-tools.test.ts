/** The `durable_task_*` tools, and what a tool that starts a task answers at once. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { clientKinds, connect, type Facts, facts, failure, type TestClient } from "../support/mcp-clients.ts";
import { modern, tasksExtension } from "../support/mcp-requests.ts";
import { startMcpServer } from "../support/mcp-server.ts";
import { jobKinds, jobTools } from "../support/task-jobs.ts";

async function open(kind: (typeof clientKinds)[number] = clientKinds[0]) {
  const server = await startMcpServer({ endpoint: { moreTools: jobTools }, kinds: jobKinds });
  return { server, client: await connect(kind, server.url) };
}

async function untilAsked(client: TestClient, taskId: string): Promise<Facts> {
  return facts(client, "durable_task_get", { taskId, waitMs: 20_000 });
}

/** Starts a task and waits for its end. */
async function ended(client: TestClient, tool: string, args: Record<string, unknown> = {}): Promise<Facts> {
  const { taskId } = await facts(client, tool, args);
  return facts(client, "durable_task_get", { taskId, waitMs: 20_000 });
}

describe.each(clientKinds)("%s", (kind) => {
  test("gets a task's id within a second, and a sentence that says how to follow it", async () => {
    const { client } = await open(kind);
    await facts(client, "durable_task_list");
    const startMs = performance.now();
    const started = await facts(client, "job_wait");
    expect(performance.now() - startMs).toBeLessThan(1_000);
    expect(started).toMatchObject({
      taskId: expect.stringMatching(/^task_[a-z2-7]{32}$/),
      status: "working",
      pollIntervalMs: expect.any(Number),
    });
    expect(started.nextStep).toContain(`durable_task_get with taskId "${started.taskId}" and waitMs 40000`);
    expect(started).not.toHaveProperty("expiresAt");
  });

  test("is answered at once by the end and by a question, however long it would wait", async () => {
    const { client } = await open(kind);
    const { taskId } = await facts(client, "job_ask");
    const asked = await facts(client, "durable_task_get", { taskId, waitMs: 40_000 });
    expect(asked).toMatchObject({
      status: "input_required",
      inputRequest: { id: expect.any(String), prompt: "Shall it go on?", choices: ["yes", "no"] },
    });
    expect(asked.nextStep).toContain(`inputId "${asked.inputRequest.id}"`);
    // What only the caller can bring on is not waited for.
    expect(await facts(client, "durable_task_get", { taskId, waitMs: 40_000 })).toMatchObject(asked);
    const waiting = facts(client, "durable_task_get", { taskId, waitMs: 40_000 });
    await facts(client, "durable_task_respond", { taskId, response: "no" });
    await waiting;
    const done = await facts(client, "durable_task_get", { taskId, waitMs: 40_000 });
    expect(done).toMatchObject({ status: "completed", result: { answer: "no" } });
  });

  test("finds a result long after its call, and as often as it asks", async () => {
    const { client, server } = await open(kind);
    const { taskId } = await facts(client, "job_count", { to: 4 });
    const other = await connect(kind, server.url);
    const done = await facts(other, "durable_task_get", { taskId, waitMs: 20_000 });
    expect(done).toMatchObject({ status: "completed", result: { sum: 10 } });
    expect(await facts(client, "durable_task_get", { taskId })).toMatchObject({ result: { sum: 10 } });
    const { tasks } = await facts(other, "durable_task_list");
    expect(tasks).toMatchObject([{ taskId, kind: "job_count", status: "completed" }]);
  });

  test("gets the same task for the same idempotencyKey and arguments, and a conflict for others", async () => {
    const { client } = await open(kind);
    const args = { to: 2, idempotencyKey: "k" };
    const [first, second] = [await facts(client, "job_count", args), await facts(client, "job_count", args)];
    expect(second.taskId).toBe(first.taskId);
    const error = await failure(client, "job_count", { ...args, to: 3 });
    expect(error).toMatchObject({ code: "idempotency_conflict", retryable: true });
  });
});

describe("answers to questions", () => {
  test("that are none of the choices are refused with the choices, and following the hint succeeds", async () => {
    const { client } = await open();
    const { taskId } = await facts(client, "job_ask");
    const { inputRequest } = await untilAsked(client, taskId);
    const args = { taskId, inputId: inputRequest.id };
    const error = await failure(client, "durable_task_respond", { ...args, response: "maybe" });
    expect(error).toMatchObject({ code: "invalid_param", param: "response", retryable: true });
    expect(error.recoveryHint).toContain('"yes"');
    await facts(client, "durable_task_respond", { ...args, response: "yes" });
    // The answer was lost on its way, and the call is made again: the same answer is no error, another one is.
    await facts(client, "durable_task_respond", { ...args, response: "yes" });
    const late = await failure(client, "durable_task_respond", { ...args, response: "no" });
    expect(late).toMatchObject({
      code: "task_not_waiting",
      repair: { tool: "durable_task_get", arguments: { taskId } },
    });
  });

  test.each([
    ["an object", { name: "Ada" }],
    ["its JSON", '{"name":"Ada"}'],
  ])("of a form are taken as %s, and again when the call is repeated", async (_form, response) => {
    const { client } = await open();
    const { taskId } = await facts(client, "job_form");
    const asked = await untilAsked(client, taskId);
    expect(asked.inputRequest.schema).toMatchObject({ required: ["name"] });
    const args = { taskId, inputId: asked.inputRequest.id, response };
    await facts(client, "durable_task_respond", args);
    await facts(client, "durable_task_respond", args);
    const done = await facts(client, "durable_task_get", { taskId, waitMs: 20_000 });
    expect(done.result).toEqual({ answer: { name: "Ada" } });
  });

  test("that do not fit the form, or are missing, are refused by the envelope", async () => {
    const { client } = await open();
    const { taskId } = await facts(client, "job_form");
    await untilAsked(client, taskId);
    for (const more of [{ response: { name: 5 } }, { response: "Ada" }, {}]) {
      const error = await failure(client, "durable_task_respond", { taskId, ...more });
      expect(error).toMatchObject({ code: "invalid_param", param: "response", retryable: true });
    }
  });

  test("where nothing is asked are task_not_waiting", async () => {
    const { client } = await open();
    const { taskId } = await facts(client, "job_wait");
    const running = await failure(client, "durable_task_respond", { taskId, response: "yes" });
    expect(running.code).toBe("task_not_waiting");
    const { taskId: over } = await ended(client, "job_count", { to: 1 });
    const done = await failure(client, "durable_task_respond", { taskId: over, response: "yes" });
    expect(done.code).toBe("task_not_waiting");
  });
});

test("a cancel is acknowledged, the state tells when the work has stopped, and what has ended stays as it is", async () => {
  const { client } = await open();
  const { taskId } = await facts(client, "job_wait");
  const acknowledged = await facts(client, "durable_task_cancel", { taskId });
  expect(acknowledged.status).toMatch(/^(?:working|cancelled)$/);
  expect(await facts(client, "durable_task_get", { taskId, waitMs: 20_000 })).toMatchObject({
    status: "cancelled",
    expiresAt: expect.any(String),
  });
  const { taskId: done } = await ended(client, "job_count", { to: 1 });
  expect(await facts(client, "durable_task_cancel", { taskId: done })).toMatchObject({ status: "completed" });
});

test("waitMs is 40000 at most", async () => {
  const { client } = await open();
  const { taskId } = await facts(client, "job_wait");
  const error = await failure(client, "durable_task_get", { taskId, waitMs: 40_001 });
  expect(error).toMatchObject({ code: "invalid_param", param: "waitMs" });
});

test("a result too long for a conversation is a stored file, the same one each time, on every face", async () => {
  const { client, server } = await open();
  const done = await ended(client, "job_large", { length: 100_000 });
  expect(JSON.stringify(done).length).toBeLessThan(3_000);
  const { handle, sizeBytes, preview } = done.result.leftOut;
  expect(sizeBytes).toBe(100_011);
  expect(preview).toMatch(/^\{"text":"x+…$/);
  expect(done.nextStep).toContain(handle);
  const again = await facts(client, "durable_task_get", { taskId: done.taskId });
  expect(again.result.leftOut.handle).toBe(handle);
  const window = await facts(client, "file_read", { handle, offset: 99_990, length: 100 });
  expect(window.data).toBe(`${"x".repeat(19)}"}`);
  const got = await modern(server.url, "tasks/get", { taskId: done.taskId }, tasksExtension);
  expect(got.result.result.structuredContent.result.leftOut.handle).toBe(handle);
  // Deleted by its owner, it is made again: the task has the result still.
  await facts(client, "file_delete", { handle });
  const renewed = await facts(client, "durable_task_get", { taskId: done.taskId });
  expect(renewed.result.leftOut.handle).not.toBe(handle);
});

test("pages of the list hold every task once, and are short enough for a conversation", async () => {
  const { client } = await open();
  for (let index = 0; index < 35; index += 1) await facts(client, "job_count", { to: 1 });
  const first = await facts(client, "durable_task_list");
  expect(first.tasks).toHaveLength(30);
  expect(JSON.stringify(first).length).toBeLessThan(16_000);
  const second = await facts(client, "durable_task_list", { cursor: first.nextCursor });
  const ids = [...first.tasks, ...second.tasks].map(({ taskId }: { taskId: string }) => taskId);
  expect(new Set(ids).size).toBe(35);
  expect(second).not.toHaveProperty("nextCursor");
  const error = await failure(client, "durable_task_list", { cursor: "x" });
  expect(error).toMatchObject({ code: "invalid_param", param: "cursor" });
});

test("every result about a task fits the output schema of the tool that started it", async () => {
  const { client, server } = await open();
  const listed = await client.tools();
  const schemaOf = (name: string) => {
    const tool = listed.find((one) => one.name === name);
    return z.fromJSONSchema(tool?.outputSchema as Parameters<typeof z.fromJSONSchema>[0]);
  };
  const finals = async (name: string, args: object): Promise<unknown[]> => {
    const started = await modern(server.url, "tools/call", { name, arguments: args });
    const { taskId } = started.result.structuredContent;
    await facts(client, "durable_task_get", { taskId, waitMs: 20_000 });
    const got = await modern(server.url, "tasks/get", { taskId }, tasksExtension);
    return [started.result.structuredContent, got.result.result.structuredContent];
  };
  for (const [name, args] of [
    ["job_count", { to: 2 }],
    ["job_fail", {}],
    ["job_large", { length: 50_000 }],
  ] as const) {
    for (const one of await finals(name, args))
      expect(schemaOf(name).safeParse(one).success, name).toBe(true);
  }
});
