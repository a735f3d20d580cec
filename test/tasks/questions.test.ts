import { describe, expect, it } from "vitest";
import { InputRefused, type JsonValue } from "../../src/tasks/engine.ts";
import { openTestStore } from "../support/engine.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitUntil } from "../support/wait-until.ts";
import { asking, begin, ended, type Handler, me, openJobs, sharedStore, startJob } from "./task-store.ts";

const shared = sharedStore();
const accept = (value: JsonValue) => ({ action: "accept", value }) as const;

describe("a question", () => {
  it("makes its task input_required, wakes who waits for that, and gives the handler the answer", async () => {
    const { tasks } = shared();
    const taskId = await begin(shared(), (c) => c.needInput({ prompt: "Colour?", choices: ["red", "blue"] }));
    const task = await asking(tasks, taskId);
    expect(task).toMatchObject({
      status: "input_required",
      inputRequests: [
        { prompt: "Colour?", choices: ["red", "blue"], schema: null, askedAt: expect.any(Date) },
      ],
    });
    const answered = await tasks.respond(me, taskId, null, accept("blue"));
    expect(answered).toMatchObject({ status: "working", inputRequests: [] });
    expect(await ended(tasks, taskId)).toMatchObject({
      status: "completed",
      result: "blue",
      inputRequests: [],
    });
  });

  it("is seen with the progress reported just before it, however short the time between two reports", async () => {
    const { tasks } = shared();
    const taskId = await begin(shared(), async (c) => {
      await c.progress("one", 0.2);
      await c.progress("two", 0.4);
      const first = await c.needInput({ prompt: "first?" });
      await c.progress("three", 0.6);
      return [first, await c.needInput({ prompt: "second?" })];
    });
    expect(await asking(tasks, taskId)).toMatchObject({
      inputRequests: [{ prompt: "first?" }],
      progress: { message: "two", fraction: 0.4 },
    });
    await tasks.respond(me, taskId, null, accept("1"));
    expect(await asking(tasks, taskId)).toMatchObject({
      inputRequests: [{ prompt: "second?" }],
      progress: { message: "three", fraction: 0.6 },
    });
    await tasks.respond(me, taskId, null, accept("2"));
    expect(await ended(tasks, taskId)).toMatchObject({
      result: ["1", "2"],
      progress: { message: "three", fraction: 0.6 },
    });
  });

  it("takes exactly one of its choices, and an answer that is none is refused and says what fits", async () => {
    const { tasks } = shared();
    const taskId = await begin(shared(), (c) => c.needInput({ prompt: "?", choices: ["yes", "no"] }));
    await asking(tasks, taskId);
    for (const wrong of ["Yes", "", "yes ", 1, null, { value: "yes" }]) {
      await expect(tasks.respond(me, taskId, null, accept(wrong))).rejects.toMatchObject({
        code: "invalid_param",
        options: { param: "response", recoveryHint: expect.stringContaining('"yes", "no"') },
      });
    }
    expect(await tasks.get(me, taskId)).toMatchObject({ status: "input_required" });
    await tasks.respond(me, taskId, null, accept("yes"));
    expect(await ended(tasks, taskId)).toMatchObject({ result: "yes" });
  });

  it("with a schema takes an object that fits it, and says what does not", async () => {
    const { tasks } = shared();
    const schema = {
      type: "object",
      properties: {
        name: { type: "string", minLength: 2, maxLength: 5 },
        age: { type: "integer", minimum: 0 },
        mail: { type: "string", format: "email" },
        size: { type: "string", enum: ["s", "m"] },
        tags: { type: "array", items: { type: "string", enum: ["a", "b"] }, maxItems: 2 },
        ok: { type: "boolean" },
      },
      required: ["name"],
    };
    const taskId = await begin(shared(), (c) => c.needInput({ prompt: "Who?", schema }));
    expect((await asking(tasks, taskId)).inputRequests[0]?.schema).toEqual(schema);
    const wrong: [JsonValue, RegExp][] = [
      ["Ann", /not an object/],
      [[], /not an object/],
      [{ age: 3 }, /'name' is missing/],
      [{ name: "A" }, /'name' has fewer/],
      [{ name: "Annabelle" }, /'name' has more/],
      [{ name: "Ann", age: 1.5 }, /'age' is not an integer/],
      [{ name: "Ann", age: -1 }, /'age' is less than 0/],
      [{ name: "Ann", mail: "no" }, /'mail' is not an e-mail/],
      [{ name: "Ann", size: "xl" }, /'size' is not one of/],
      [{ name: "Ann", tags: ["a", "c"] }, /'tags' has an entry that is not one of/],
      [{ name: "Ann", ok: "true" }, /'ok' is neither/],
    ];
    for (const [value, message] of wrong) {
      await expect(tasks.respond(me, taskId, null, accept(value))).rejects.toThrow(message);
    }
    const right = { name: "Ann", age: 3, mail: "a@b.c", size: "m", tags: ["b"], ok: true, more: 1 };
    await tasks.respond(me, taskId, null, accept(right));
    expect(await ended(tasks, taskId)).toMatchObject({ result: right });
  });

  it.each(["decline", "cancel"] as const)(
    "that meets %s throws a typed error into the handler",
    async (action) => {
      const { tasks } = shared();
      const taskId = await begin(shared(), async (c) => {
        try {
          return await c.needInput({ prompt: "?" });
        } catch (error) {
          return error instanceof InputRefused ? `refused: ${error.action}` : "other";
        }
      });
      await asking(tasks, taskId);
      await tasks.respond(me, taskId, null, { action });
      expect(await ended(tasks, taskId)).toMatchObject({ result: `refused: ${action}` });
    },
  );

  it("answered once takes the same answer again, and another one is too late", async () => {
    const { tasks } = shared();
    const taskId = await begin(shared(), async (c) => [
      await c.needInput({ prompt: "first", schema: { type: "object" } }),
      await c.needInput({ prompt: "second" }),
    ]);
    const id = (await asking(tasks, taskId)).inputRequests[0]?.id ?? "";
    await tasks.respond(me, taskId, id, accept({ a: 1, b: 2 }));
    await tasks.respond(me, taskId, id, accept({ b: 2, a: 1 }));
    await expect(tasks.respond(me, taskId, id, accept({ a: 2 }))).rejects.toMatchObject({
      code: "task_not_waiting",
    });
    await expect(tasks.respond(me, taskId, id, { action: "decline" })).rejects.toMatchObject({
      code: "task_not_waiting",
    });
    await asking(tasks, taskId);
    await expect(tasks.respond(me, taskId, "input_unknown", accept("x"))).rejects.toMatchObject({
      code: "task_not_waiting",
    });
    await tasks.respond(me, taskId, null, accept("end"));
    expect(await ended(tasks, taskId)).toMatchObject({ result: [{ a: 1, b: 2 }, "end"] });
    await expect(tasks.respond(me, taskId, null, accept("x"))).rejects.toMatchObject({
      code: "task_not_waiting",
    });
    await tasks.respond(me, taskId, id, accept({ a: 1, b: 2 }));
  });

  it("beside others is shown in the order of asking, and each answer reaches its own", async () => {
    const { tasks } = shared();
    const prompts = ["zeta", "alpha", "mid"];
    const taskId = await begin(shared(), (c) =>
      Promise.all(prompts.map((prompt) => c.needInput({ prompt }))),
    );
    await waitUntil(async () => (await tasks.get(me, taskId)).inputRequests.length === 3);
    const { inputRequests } = await tasks.get(me, taskId);
    expect(inputRequests.map(({ prompt }) => prompt)).toEqual(prompts);
    await tasks.respond(me, taskId, inputRequests[2]?.id ?? "", accept("for mid"));
    expect((await tasks.get(me, taskId)).status).toBe("input_required");
    await tasks.respond(me, taskId, null, accept("for zeta"));
    await tasks.respond(me, taskId, null, accept("for alpha"));
    expect(await ended(tasks, taskId)).toMatchObject({ result: ["for zeta", "for alpha", "for mid"] });
  });

  it("asked twice in the same words is two questions", async () => {
    const { tasks } = shared();
    const taskId = await begin(shared(), async (c) => [
      await c.needInput({ prompt: "More?" }),
      await c.needInput({ prompt: "More?" }),
    ]);
    const first = (await asking(tasks, taskId)).inputRequests[0]?.id;
    await tasks.respond(me, taskId, null, accept("1"));
    await waitUntil(async () => (await tasks.get(me, taskId)).status === "input_required");
    expect((await tasks.get(me, taskId)).inputRequests[0]?.id).not.toBe(first);
    await tasks.respond(me, taskId, null, accept("2"));
    expect(await ended(tasks, taskId)).toMatchObject({ result: ["1", "2"] });
  });

  it("keeps its id, and an answer that came while nobody ran its task is kept", async () => {
    const dataDir = await tempDir();
    let asked = 0;
    const handler: Handler = async (context) => {
      asked += 1;
      return [await context.needInput({ prompt: "one" }), await context.needInput({ prompt: "two" })];
    };
    const before = await openJobs(handler, { dataDir });
    const taskId = await startJob(before.tasks);
    const { inputRequests } = await asking(before.tasks, taskId);
    await before.close();
    // No handler here: the answer is only recorded.
    const without = await openTestStore({ dataDir });
    expect((await without.tasks.get(me, taskId)).inputRequests).toEqual(inputRequests);
    await without.tasks.respond(me, taskId, null, accept("kept"));
    await without.close();
    const { tasks } = await openJobs(handler, { dataDir });
    expect(await asking(tasks, taskId)).toMatchObject({ inputRequests: [{ prompt: "two" }] });
    await tasks.respond(me, taskId, null, accept("end"));
    expect(await ended(tasks, taskId)).toMatchObject({ result: ["kept", "end"] });
    expect(asked).toBe(2);
  });

  it("is answered by another process than the one whose handler waits", async () => {
    const dataDir = await tempDir();
    let begun = 0;
    const handler: Handler = (context) => {
      begun += 1;
      return context.needInput({ prompt: "?" });
    };
    const runs = await openJobs(handler, { dataDir });
    const answers = await openTestStore({ dataDir });
    const taskId = await startJob(runs.tasks);
    expect(await asking(answers.tasks, taskId)).toMatchObject({ inputRequests: [{ prompt: "?" }] });
    await answers.tasks.respond(me, taskId, null, accept("from afar"));
    expect(await ended(answers.tasks, taskId)).toMatchObject({ result: "from afar" });
    expect(begun).toBe(1);
  });
});

describe("many tasks that wait", () => {
  it("take no place from those that run, and those put away for want of memory go on when they are answered", async () => {
    const replays = new Map<string, number>();
    const { tasks } = await openJobs(
      async (context) => {
        replays.set(context.taskId, (replays.get(context.taskId) ?? 0) + 1);
        await context.step("before", () => 1);
        return context.needInput({ prompt: "?" });
      },
      { tasks: { concurrency: 2, perPrincipal: 2, maxWaiting: 3 } },
    );
    const ids: string[] = [];
    for (let n = 0; n < 10; n += 1) ids.push(await startJob(tasks));
    await waitUntil(
      async () =>
        (await tasks.list(me, { status: "input_required", limit: 100, cursor: null })).tasks.length === 10,
    );
    for (const id of ids) await tasks.respond(me, id, null, accept(id));
    for (const id of ids) expect(await ended(tasks, id)).toMatchObject({ status: "completed", result: id });
    const counts = [...replays.values()];
    expect(counts.filter((count) => count === 1).length).toBe(3);
    expect(counts.filter((count) => count === 2).length).toBe(7);
  });
});
