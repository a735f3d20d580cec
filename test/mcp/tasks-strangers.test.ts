/** A task that does not exist, one that is another's and one past its time are one and the same, on all three faces. */
import { describe, expect, test } from "vitest";
import type { Store } from "../../src/store/open-store.ts";
import { type ClientKind, clientKinds, connect, failure } from "../support/mcp-clients.ts";
import { legacy, modern, tasksExtension } from "../support/mcp-requests.ts";
import { startMcpServer } from "../support/mcp-server.ts";
import { jobKinds, jobTools } from "../support/task-jobs.ts";
import { passTime } from "../tasks/task-store.ts";

const principalOf = (request: Request): string => request.headers.get("x-principal") ?? "me";
const day = 86_400_000;

/** Ids of a task that never was, of one of somebody else, and of one that has expired. */
async function strangers(): Promise<{ url: string; ids: readonly string[] }> {
  const { url, tasks, dataDir } = await startMcpServer({
    endpoint: { moreTools: jobTools, principalOf, separateCallers: true },
    kinds: jobKinds,
  });
  const start = async (principal: string, to: number) => {
    const { task } = await tasks.start(principal, { kind: "job_count", args: { to } });
    await tasks.get(principal, task.taskId, { waitMs: 20_000 });
    return task.taskId;
  };
  const expired = await start("me", 1);
  passTime({ dataDir } as Store, 2 * day);
  const foreign = await start("somebody else", 2);
  return { url, ids: [`task_${"a".repeat(32)}`, "no id at all", foreign, expired] };
}

const once = (answers: readonly unknown[]): Set<string> => new Set(answers.map((one) => JSON.stringify(one)));

describe.each(clientKinds)("the tools, to %s", (kind: ClientKind) => {
  test.each([
    ["durable_task_get", {}],
    ["durable_task_get", { waitMs: 40_000 }],
    ["durable_task_respond", { response: "yes" }],
    ["durable_task_respond", { response: "yes", inputId: "input_1" }],
    ["durable_task_cancel", {}],
  ])("%s %j answers unknown_task", async (name, args) => {
    const { url, ids } = await strangers();
    const client = await connect(kind, url);
    const errors = await Promise.all(ids.map((taskId) => failure(client, name, { taskId, ...args })));
    expect(once(errors).size).toBe(1);
    expect(errors[0]).toMatchObject({ code: "unknown_task", retryable: false });
  });
});

describe("the protocol", () => {
  test("tasks/get, tasks/update and tasks/cancel of the extension answer -32602", async () => {
    const { url, ids } = await strangers();
    for (const [method, more] of [
      ["tasks/get", {}],
      ["tasks/update", { inputResponses: { a: { action: "decline" } } }],
      ["tasks/cancel", {}],
    ] as const) {
      const answers = await Promise.all(
        ids.map((taskId) => modern(url, method, { taskId, ...more }, tasksExtension)),
      );
      expect(once(answers).size, method).toBe(1);
      expect(answers[0], method).toMatchObject({ error: { code: -32_602, data: { code: "unknown_task" } } });
    }
  });

  test("tasks/get, tasks/result and tasks/cancel of the core answer -32602", async () => {
    const { url, ids } = await strangers();
    for (const method of ["tasks/get", "tasks/result", "tasks/cancel"]) {
      const answers = await Promise.all(ids.map((taskId) => legacy(url, method, { taskId })));
      expect(once(answers).size, method).toBe(1);
      expect(answers[0], method).toMatchObject({ error: { code: -32_602, data: { code: "unknown_task" } } });
    }
  });

  test("lists show neither what is another's nor what is past its time", async () => {
    const { url } = await strangers();
    expect((await legacy(url, "tasks/list")).result).toEqual({ tasks: [] });
    expect(
      (await legacy(url, "tasks/list", {}, { "X-Principal": "somebody else" })).result.tasks,
    ).toHaveLength(1);
    const client = await connect(clientKinds[0], url);
    const { facts } = await client.call("durable_task_list");
    expect(facts.tasks).toEqual([]);
  });
});
