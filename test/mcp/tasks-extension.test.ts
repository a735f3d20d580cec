/** `io.modelcontextprotocol/tasks` on the wire, request by request. */
import { describe, expect, test } from "vitest";
import { modern, type RpcAnswer, tasksExtension } from "../support/mcp-requests.ts";
import { startMcpServer } from "../support/mcp-server.ts";
import { jobKinds, jobTools } from "../support/task-jobs.ts";

const eliciting = { ...tasksExtension, elicitation: {} };

async function open() {
  const { url, tasks } = await startMcpServer({ endpoint: { moreTools: jobTools }, kinds: jobKinds });
  const call = (name: string, args: object = {}, capabilities: object = tasksExtension) =>
    modern(url, "tools/call", { name, arguments: args }, capabilities);
  const get = (taskId: string, capabilities: object = tasksExtension) =>
    modern(url, "tasks/get", { taskId }, capabilities);
  const start = async (name: string, args: object = {}): Promise<string> =>
    (await call(name, args)).result.taskId;
  /** The task once it has left `working`. */
  const settled = async (taskId: string, capabilities: object = tasksExtension): Promise<RpcAnswer> => {
    for (;;) {
      const got = await get(taskId, capabilities);
      if (got.result?.status !== "working") return got;
      await tasks.get("local", taskId, { waitMs: 1_000 });
    }
  };
  return { url, tasks, call, get, start, settled };
}

describe("without the capability in the request itself", () => {
  test("a tool answers like any other, and never with a task", async () => {
    const { call } = await open();
    await call("job_count", { to: 1 }, tasksExtension);
    const { result } = await call("job_count", { to: 1 }, {});
    expect(result).not.toHaveProperty("taskId");
    expect(result).toMatchObject({
      resultType: "complete",
      structuredContent: { taskId: expect.any(String) },
      content: [{ type: "text" }],
    });
  });

  test.each(["tasks/get", "tasks/update", "tasks/cancel"])("%s is refused with -32021", async (method) => {
    const { url, start } = await open();
    const params = { taskId: await start("job_wait"), inputResponses: {} };
    for (const capabilities of [{}, { extensions: {} }]) {
      const refused = await modern(url, method, params, capabilities);
      expect(refused).toMatchObject({
        httpStatus: 400,
        error: { code: -32_021, data: { requiredCapabilities: tasksExtension } },
      });
    }
  });
});

describe("a task", () => {
  test("is handed out flat, and lives without limit while it runs", async () => {
    const { call, get } = await open();
    const { result } = await call("job_wait");
    expect(Object.keys(result).sort()).toEqual(
      [
        "_meta",
        "createdAt",
        "lastUpdatedAt",
        "pollIntervalMs",
        "resultType",
        "status",
        "taskId",
        "ttlMs",
      ].sort(),
    );
    expect(result).toMatchObject({ resultType: "task", status: "working", ttlMs: null });
    expect((await get(result.taskId)).result).toMatchObject({ resultType: "complete", ttlMs: null });
  });

  test("has a time to live from its creation once it has ended, and its result is that of the call", async () => {
    const { start, settled } = await open();
    const { result } = await settled(await start("job_count", { to: 3 }));
    expect(result).toMatchObject({
      resultType: "complete",
      status: "completed",
      result: {
        resultType: "complete",
        structuredContent: { status: "completed", result: { sum: 6 }, nextStep: expect.any(String) },
      },
    });
    expect(result.result).not.toHaveProperty("isError");
    const { expiresAt } = result.result.structuredContent;
    expect(Date.parse(result.createdAt) + result.ttlMs).toBe(Date.parse(expiresAt));
  });

  test("whose job failed is completed with an isError result", async () => {
    const { start, settled } = await open();
    const { result } = await settled(await start("job_fail"));
    expect(result).toMatchObject({
      status: "completed",
      result: { isError: true, structuredContent: { status: "failed", error: { code: "task_failed" } } },
    });
    expect(result).not.toHaveProperty("error");
  });

  test("is not made where the arguments are wrong: the call has its usual refusal", async () => {
    const { call } = await open();
    const { result } = await call("job_count", { to: "three" });
    expect(result).toMatchObject({
      resultType: "complete",
      isError: true,
      structuredContent: { status: "failed", error: { code: "invalid_param", param: "to" } },
    });
  });

  test("that is cancelled is acknowledged with nothing, twice, and the state tells when it has stopped", async () => {
    const { url, start, settled } = await open();
    const taskId = await start("job_wait");
    for (const _time of [1, 2]) {
      const { result } = await modern(url, "tasks/cancel", { taskId }, tasksExtension);
      expect(result).toEqual({ resultType: "complete", _meta: expect.anything() });
    }
    const { result } = await settled(taskId);
    expect(result).toMatchObject({ status: "cancelled", ttlMs: expect.any(Number) });
    expect(result).not.toHaveProperty("result");
  });
});

describe("a question", () => {
  test("is an elicitation for a client that elicits forms, and names durable_task_respond for all", async () => {
    const { start, settled } = await open();
    const taskId = await start("job_ask");
    const { result } = await settled(taskId, eliciting);
    const [request] = Object.values(result.inputRequests);
    expect(request).toEqual({
      method: "elicitation/create",
      params: {
        mode: "form",
        message: "Shall it go on?",
        requestedSchema: {
          type: "object",
          properties: { answer: { type: "string", title: "Answer", enum: ["yes", "no"] } },
          required: ["answer"],
        },
      },
    });
    for (const capabilities of [tasksExtension, { ...tasksExtension, elicitation: { url: {} } }]) {
      const other = (await settled(taskId, capabilities)).result;
      expect(other).toMatchObject({ status: "input_required", inputRequests: {} });
      expect(other.statusMessage).toContain(`Call durable_task_respond with taskId "${taskId}"`);
    }
  });

  test("of a form is asked with its own schema, and answered with its content", async () => {
    const { url, start, settled } = await open();
    const taskId = await start("job_form");
    const { inputRequests } = (await settled(taskId, eliciting)).result;
    const [[id, request]] = Object.entries<{ params: object }>(inputRequests) as [
      [string, { params: object }],
    ];
    expect(request.params).toMatchObject({ requestedSchema: { properties: { name: { type: "string" } } } });
    const inputResponses = { [id]: { action: "accept", content: { name: "Ada" } } };
    await modern(url, "tasks/update", { taskId, inputResponses }, eliciting);
    const { result } = await settled(taskId);
    expect(result.result.structuredContent.result).toEqual({ answer: { name: "Ada" } });
  });

  test.each(["decline", "cancel"])("that is answered with %s is refused to the job", async (action) => {
    const { url, start, settled } = await open();
    const taskId = await start("job_ask");
    const [id = ""] = Object.keys((await settled(taskId, eliciting)).result.inputRequests);
    const params = { taskId, inputResponses: { [id]: { action } } };
    const { result } = await modern(url, "tasks/update", params, eliciting);
    expect(result).toEqual({ resultType: "complete", _meta: expect.anything() });
    const { result: done } = await settled(taskId);
    expect(done.result.structuredContent.result).toEqual({ refused: action });
  });

  test("stays open where the answer does not fit, and answers to what is not open are passed over", async () => {
    const { url, start, settled } = await open();
    const taskId = await start("job_ask");
    const [id = ""] = Object.keys((await settled(taskId, eliciting)).result.inputRequests);
    for (const answer of [{ action: "accept", content: { answer: "maybe" } }, { action: "accept" }, 5]) {
      const params = { taskId, inputResponses: { [id]: answer } };
      const refused = await modern(url, "tasks/update", params, eliciting);
      expect(refused.error).toMatchObject({ code: -32_602, data: { code: "invalid_param" } });
    }
    const unknown = { taskId, inputResponses: { nobody: { action: "decline" }, strange: 5 } };
    expect((await modern(url, "tasks/update", unknown, eliciting)).result).toBeDefined();
    expect((await modern(url, "tasks/update", { taskId }, eliciting)).error?.code).toBe(-32_602);
    expect((await settled(taskId, eliciting)).result.status).toBe("input_required");
  });
});

test("Mcp-Name must be the task's id", async () => {
  const { url, start } = await open();
  const taskId = await start("job_wait");
  const other = { "Mcp-Name": `task_${"a".repeat(32)}` };
  const refused = await modern(url, "tasks/get", { taskId }, tasksExtension, other);
  expect(refused).toMatchObject({ httpStatus: 400, error: { code: -32_020 } });
});

test.each(["tasks/list", "tasks/result", "tasks/fly"])("%s is not found, with 404", async (method) => {
  const { url } = await open();
  expect(await modern(url, method, {}, tasksExtension)).toMatchObject({
    httpStatus: 404,
    error: { code: -32_601 },
  });
});
