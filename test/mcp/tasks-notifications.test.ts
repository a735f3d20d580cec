/** `notifications/tasks` through `subscriptions/listen` (2026-07-28). */
import { describe, expect, onTestFinished, test } from "vitest";
import { modern, modernInit, tasksExtension } from "../support/mcp-requests.ts";
import { startMcpServer } from "../support/mcp-server.ts";
import { jobKinds, jobTools } from "../support/task-jobs.ts";
import { waitUntil } from "../support/wait-until.ts";

interface Message {
  readonly method?: string;
  readonly id?: unknown;
  readonly result?: { readonly resultType: string; readonly _meta: Record<string, unknown> };
  // biome-ignore lint/suspicious/noExplicitAny: an expectation follows each look at it
  readonly params?: any;
}

const principalOf = (request: Request): string => request.headers.get("x-principal") ?? "me";

async function open() {
  const { url, tasks, endpoint } = await startMcpServer({
    endpoint: { moreTools: jobTools, principalOf },
    kinds: jobKinds,
  });
  const start = async (kind: string, args: { to?: number } = {}, principal = "me") =>
    (await tasks.start(principal, { kind, args })).task.taskId;
  return { url, tasks, endpoint, start };
}

/** A subscription that is open; its messages as they come. */
async function listen(url: string, taskIds: readonly string[], capabilities: object = tasksExtension) {
  const hangUp = new AbortController();
  onTestFinished(() => hangUp.abort());
  const init = modernInit("subscriptions/listen", { notifications: { taskIds } }, capabilities);
  const response = await fetch(url, { ...init, signal: hangUp.signal });
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  const messages: Message[] = [];
  const state = { ended: false };
  void (async () => {
    let text = "";
    for await (const piece of response.body ?? []) {
      text += Buffer.from(piece).toString();
      const frames = text.split("\n\n");
      text = frames.pop() ?? "";
      for (const frame of frames) {
        const data = /^data: (.+)$/m.exec(frame)?.[1];
        if (data !== undefined) messages.push(JSON.parse(data) as Message);
      }
    }
    state.ended = true;
  })().catch(() => {});
  const id = (JSON.parse(String(init.body)) as { id: unknown }).id;
  return { messages, state, id, hangUp: () => hangUp.abort() };
}

const statuses = (messages: readonly Message[]): unknown[] =>
  messages.filter(({ method }) => method === "notifications/tasks").map(({ params }) => params.status);

test("a listener is told what it will hear of, each change as tasks/get would tell it, and the end", async () => {
  const { url, tasks, start } = await open();
  const taskId = await start("job_ask");
  const eliciting = { ...tasksExtension, elicitation: {} };
  const { messages, state, id } = await listen(url, [taskId], eliciting);
  await waitUntil(() => statuses(messages).includes("input_required"));
  expect(messages[0]).toMatchObject({
    method: "notifications/subscriptions/acknowledged",
    params: { notifications: { taskIds: [taskId] } },
  });
  await tasks.respond("me", taskId, null, { action: "accept", value: "yes" });
  await waitUntil(() => state.ended);
  expect(statuses(messages).at(-1)).toBe("completed");
  for (const { params } of messages.slice(0, -1))
    expect(params._meta["io.modelcontextprotocol/subscriptionId"]).toBe(id);
  const told = messages.findLast(({ method }) => method === "notifications/tasks")?.params;
  const { result: got } = await modern(url, "tasks/get", { taskId }, eliciting);
  const { _meta: _told, ...notification } = told;
  const { _meta: _got, resultType: _type, ...task } = got;
  expect(notification).toEqual(task);
  const asked = messages.find(({ params }) => params?.status === "input_required")?.params;
  expect(Object.values(asked.inputRequests)).toMatchObject([{ method: "elicitation/create" }]);
  // Nothing more can come: the stream says so by its result.
  expect(messages.at(-1)).toMatchObject({ id, result: { resultType: "complete" } });
});

test("what has ended before is told at once, and the stream ends", async () => {
  const { url, tasks, start } = await open();
  const taskId = await start("job_count", { to: 1 });
  await tasks.get("me", taskId, { waitMs: 20_000 });
  const { messages, state } = await listen(url, [taskId]);
  await waitUntil(() => state.ended);
  expect(statuses(messages)).toEqual(["completed"]);
});

test("another's task, an unknown one and what is no id are passed over alike", async () => {
  const { url, start } = await open();
  const [mine, foreign] = [await start("job_wait"), await start("job_wait", {}, "somebody else")];
  const { messages } = await listen(url, [foreign, mine, "nothing", `task_${"a".repeat(32)}`]);
  await waitUntil(() => messages.length >= 2);
  expect(messages[0]?.params.notifications).toEqual({ taskIds: [mine] });
  expect(messages[1]?.params.taskId).toBe(mine);
});

test("a listener that hangs up costs nothing more, and closing the server ends the others in order", async () => {
  const { url, endpoint, start } = await open();
  const taskId = await start("job_wait");
  const [first, second] = [await listen(url, [taskId]), await listen(url, [taskId])];
  await waitUntil(() => statuses(first.messages).length === 1 && statuses(second.messages).length === 1);
  first.hangUp();
  await endpoint.close();
  await waitUntil(() => second.state.ended);
  expect(second.messages.at(-1)).toMatchObject({ id: second.id, result: { resultType: "complete" } });
});

describe("is refused", () => {
  test("to who did not declare the extension, with -32021", async () => {
    const { url, start } = await open();
    const params = { notifications: { taskIds: [await start("job_wait")] } };
    expect(await modern(url, "subscriptions/listen", params)).toMatchObject({
      httpStatus: 400,
      error: { code: -32_021, data: { requiredCapabilities: tasksExtension } },
    });
  });

  test("for more than 100 tasks", async () => {
    const { url } = await open();
    const taskIds = Array.from({ length: 101 }, (_one, index) => `task_${index}`);
    const params = { notifications: { taskIds } };
    const { error } = await modern(url, "subscriptions/listen", params, tasksExtension);
    expect(error?.code).toBe(-32_602);
  });

  test("by the SDK where the header fields are wrong", async () => {
    const { url } = await open();
    const params = { notifications: { taskIds: [] } };
    const wrong = { "Mcp-Method": "tasks/get" };
    const answer = await modern(url, "subscriptions/listen", params, tasksExtension, wrong);
    expect(answer).toMatchObject({ httpStatus: 400, error: { code: -32_020 } });
  });
});
