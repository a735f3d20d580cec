import { describe, expect, it } from "vitest";
import { TransferError } from "../../src/errors.ts";
import type { StepContext, Task } from "../../src/tasks/engine.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitUntil } from "../support/wait-until.ts";
import {
  asking,
  ended,
  gate,
  type Handler,
  kindOf,
  me,
  openJobs,
  passTime,
  recordedSteps,
  runJob,
  sharedStore,
  startJob,
} from "./task-store.ts";

/** Runs a handler up to its first question, closes the store, and lets another version of it go on with the answer. */
async function inTwoVersions(first: Handler, second: Handler): Promise<Task> {
  const dataDir = await tempDir();
  const before = await openJobs(first, { dataDir });
  const taskId = await startJob(before.tasks);
  await asking(before.tasks, taskId);
  await before.close();
  const { tasks } = await openJobs(second, { dataDir });
  await tasks.respond(me, taskId, null, { action: "accept", value: "yes" });
  return ended(tasks, taskId);
}

const shared = sharedStore();

const ok = (context: Parameters<Handler>[0]) => context.needInput({ prompt: "Go on?" });

describe("a task", () => {
  it("has what its handler returned for its result, and its arguments reach the handler as they were", async () => {
    const task = await runJob(shared(), (_context, args) => ({ got: args }), {
      deep: [1, "two", null, { three: true }],
    });
    expect(task).toMatchObject({
      status: "completed",
      result: { got: { deep: [1, "two", null, { three: true }] } },
      error: null,
      cancelRequested: false,
    });
    expect(task.endedAt).toBeInstanceOf(Date);
    expect((task.expiresAt?.getTime() ?? 0) - (task.endedAt?.getTime() ?? 0)).toBe(86_400_000);
  });

  it("whose handler returns nothing completes without a result", async () => {
    expect(await runJob(shared(), () => {})).toMatchObject({ status: "completed", result: undefined });
  });

  it("whose handler throws fails with the message of its author", async () => {
    const task = await runJob(shared(), () => {
      throw new Error("The site answers 503.");
    });
    expect(task).toMatchObject({
      status: "failed",
      error: { code: "task_failed", message: "The site answers 503." },
    });
  });

  it.each<[string, unknown, string]>([
    ["null", null, "null"],
    ["nothing", undefined, "undefined"],
    ["an object without a prototype", Object.create(null), "What the task's program threw cannot be read."],
    [
      "an error whose message is no string",
      Object.assign(new Error(), { message: { code: 7 } }),
      "[object Object]",
    ],
  ])("whose handler throws %s fails", async (_what, thrown, message) => {
    const task = await runJob(shared(), () => {
      throw thrown;
    });
    expect(task).toMatchObject({ status: "failed", error: { code: "task_failed", message } });
  });

  it("whose handler returns what throws when it is read fails", async () => {
    const trap = {
      get value(): string {
        throw new Error("The value is gone.");
      },
    };
    expect(await runJob(shared(), () => trap)).toMatchObject({
      status: "failed",
      error: { code: "task_failed", message: "The value is gone." },
    });
  });

  it("whose handler throws an error of the catalogue keeps its code", async () => {
    const task = await runJob(shared(), () => {
      throw new TransferError("quota_exceeded", "Too much.", {
        repair: { tool: "file_delete", arguments: {} },
      });
    });
    expect(task.error).toMatchObject({
      code: "quota_exceeded",
      message: "Too much.",
      repair: { tool: "file_delete" },
    });
  });

  it("whose handler lets a failing call go unawaited does not bring the process down", async () => {
    const task = await runJob(shared(), async (context) => {
      void context.step("lonely", () => Promise.reject(new Error("nobody hears this")));
      await context.step("other", () => 1);
      return "done";
    });
    expect(task).toMatchObject({ status: "completed", result: "done" });
  });

  it("of a kind that this process has no handler for waits until one is registered", async () => {
    const { tasks } = shared();
    const { task } = await tasks.start(me, { kind: "late", args: null });
    expect(await tasks.get(me, task.taskId, { waitMs: 50 })).toMatchObject({ status: "working" });
    tasks.register(kindOf("late", () => "here"));
    expect(await ended(tasks, task.taskId)).toMatchObject({ result: "here" });
  });

  it("cannot have two handlers of one kind in a process, and one may be registered twice", async () => {
    const { tasks } = shared();
    const kind = kindOf("k", () => 1);
    tasks.register(kind);
    tasks.register(kind);
    expect(() => tasks.register(kindOf("k", () => 2))).toThrow(/another handler/);
  });
});

describe("a step", () => {
  it("gives the copy of its result that is recorded", async () => {
    const task = await runJob(shared(), async (context) => {
      const inner = { list: [1] };
      const got = await context.step("one", () => inner);
      inner.list.push(2);
      return { got, nothing: (await context.step("two", () => {})) === undefined };
    });
    expect(task.result).toEqual({ got: { list: [1] }, nothing: true });
  });

  it("that is recorded does not run again when the task goes on in another process, and gives the same", async () => {
    const ran: string[] = [];
    const noted = <T>(name: string, value: T): T => {
      ran.push(name);
      return value;
    };
    const handler: Handler = async (context) => {
      const small = await context.step("small", () => noted("small", { a: 1 }));
      const large = await context.step("large", () => noted("large", "x".repeat(500_000)));
      const none = await context.step("none", () => void ran.push("none"));
      await ok(context);
      return [small, large.length, none === undefined];
    };
    const task = await inTwoVersions(handler, handler);
    expect(task).toMatchObject({ status: "completed", result: [{ a: 1 }, 500_000, true] });
    expect(ran).toEqual(["small", "large", "none"]);
  });

  it("whose last error is recorded throws it again on a replay, with its code, and does not run", async () => {
    let runs = 0;
    const errors: unknown[] = [];
    const handler: Handler = async (context) => {
      for (const [name, error] of [
        ["plain", new RangeError("too far")],
        ["coded", new TransferError("not_active", "Not yet.", { cursor: 7 })],
      ] as const) {
        await context
          .step(name, () => {
            runs += 1;
            throw error;
          })
          .catch((thrown: unknown) => errors.push(thrown));
      }
      await ok(context);
      return "survived";
    };
    expect(await inTwoVersions(handler, handler)).toMatchObject({ status: "completed", result: "survived" });
    expect(runs).toBe(2);
    expect(errors[2]).toMatchObject({ name: "RangeError", message: "too far" });
    expect(errors[3]).toMatchObject({ name: "TransferError", code: "not_active", options: { cursor: 7 } });
  });

  it("has a key of its own that other steps and other tasks do not have", async () => {
    const keys: string[] = [];
    const note = (step: StepContext) => void keys.push(step.key);
    for (let round = 0; round < 2; round += 1) {
      await runJob(shared(), async (context) => {
        await context.step("a", note);
        await context.step("b", note);
      });
    }
    expect(new Set(keys).size).toBe(4);
  });

  it("is tried as often as it says, with the same key, and a wait between that another process goes on with", async () => {
    const dataDir = await tempDir();
    const tries: [string, number][] = [];
    const handler: Handler = (context) =>
      context.step(
        "flaky",
        ({ key, attempt }) => {
          tries.push([key, attempt]);
          if (tries.length < 3) throw new Error(`try ${tries.length}`);
          return attempt;
        },
        { attempts: 3, backoffMs: 3_600_000 },
      );
    const before = await openJobs(handler, { dataDir });
    const taskId = await startJob(before.tasks);
    await waitUntil(() => tries.length === 1);
    await before.close();
    passTime(before, 4_000_000);
    const after = await openJobs(handler, { dataDir });
    await waitUntil(() => tries.length === 2);
    await after.close();
    passTime(after, 4_000_000);
    const { tasks } = await openJobs(handler, { dataDir });
    expect(await ended(tasks, taskId)).toMatchObject({ status: "completed", result: 3 });
    expect(new Set(tries.map(([key]) => key)).size).toBe(1);
    expect(tries.map(([, attempt]) => attempt)).toEqual([1, 2, 3]);
  });

  it("that fails as often as it may throws its last error", async () => {
    let tries = 0;
    const task = await runJob(shared(), (context) =>
      context.step(
        "hopeless",
        () => {
          tries += 1;
          return Promise.reject(new Error(`try ${tries}`));
        },
        {
          attempts: 3,
          backoffMs: 1,
        },
      ),
    );
    expect(task).toMatchObject({ status: "failed", error: { message: "try 3" } });
    expect(tries).toBe(3);
  });

  it("may run beside others, and what each gave is found by its name on a replay", async () => {
    let runs = 0;
    const handler: Handler = async (context) => {
      const work = [3, 1, 2].map((n) =>
        context.step(`part ${n}`, async () => {
          runs += 1;
          await new Promise((resolve) => setTimeout(resolve, n * 5));
          return n;
        }),
      );
      const parts = await Promise.all(work);
      await ok(context);
      return parts;
    };
    expect(await inTwoVersions(handler, handler)).toMatchObject({ result: [3, 1, 2] });
    expect(runs).toBe(3);
  });
});

describe("a handler that breaks the rules", () => {
  it.each<[string, Handler, RegExp]>([
    [
      "uses a name twice",
      async (c) => [await c.step("x", () => 1), await c.step("x", () => 2)],
      /Two steps .* 'x'/,
    ],
    ["uses no name", (c) => c.step("", () => 1), /needs a name/],
    ["uses an endless name", (c) => c.step("n".repeat(513), () => 1), /needs a name/],
    ["asks for no attempts", (c) => c.step("x", () => 1, { attempts: 0 }), /attempts/],
    ["sleeps for no number", (c) => c.sleep(Number.NaN), /sleep/],
    ["asks without words", (c) => c.needInput({ prompt: "" }), /prompt/],
    ["offers one choice twice", (c) => c.needInput({ prompt: "?", choices: ["a", "a"] }), /choices/],
  ])(
    "one that %s ends failed and says why, even where it catches the error",
    async (_what, handler, message) => {
      const task = await runJob(shared(), async (context) => {
        await Promise.resolve(handler(context, null)).catch(() => {});
        return "hidden";
      });
      expect(task).toMatchObject({ status: "failed", error: { code: "task_failed" } });
      expect(task.error?.message).toMatch(message);
    },
  );

  it("a step that gives what is not JSON fails the task and says which step and where", async () => {
    const task = await runJob(shared(), (context) =>
      context.step("bad", () => ({ at: new Date() }) as never),
    );
    expect(task).toMatchObject({ status: "failed", error: { code: "task_failed" } });
    expect(task.error?.message).toMatch(/step 'bad' is not JSON: at is a Date/);
  });

  it("a handler that returns what is not JSON fails its task and says where", async () => {
    const task = await runJob(shared(), () => ({ sum: Number.NaN }));
    expect(task).toMatchObject({ status: "failed", result: undefined, error: { code: "task_failed" } });
    expect(task.error?.message).toMatch(/returned is not JSON: sum is NaN/);
  });
});

describe("a handler that has changed between two runs", () => {
  it("and calls a recorded step otherwise fails the task and says which", async () => {
    const task = await inTwoVersions(
      async (c) => [await c.step("load", () => 1), await ok(c)],
      async (c) => [await c.sleep(1, { name: "load" }), await ok(c)],
    );
    expect(task).toMatchObject({ status: "failed", error: { code: "task_failed" } });
    expect(task.error?.message).toMatch(/changed: 'load' was recorded as a step, and is a sleep now/);
  });

  it("and does not come to a recorded step any more fails the task and says which", async () => {
    const task = await inTwoVersions(
      async (c) => [await c.step("old name", () => 1), await ok(c)],
      async (c) => [await c.step("new name", () => 1), await ok(c)],
    );
    expect(task.error?.message).toMatch(/changed: its step 'old name'/);
  });

  it("and only orders its steps otherwise, or has more of them, goes on", async () => {
    const task = await inTwoVersions(
      async (c) => [await c.step("a", () => "a1"), await c.step("b", () => "b1"), await ok(c)],
      async (c) => [
        await c.step("b", () => "b2"),
        await c.step("new", () => "n2"),
        await c.step("a", () => "a2"),
        await ok(c),
      ],
    );
    expect(task).toMatchObject({ status: "completed", result: ["b1", "n2", "a1", "yes"] });
  });

  it("and rightly goes another way after a failed step beside others is not taken for changed", async () => {
    const handler: Handler = async (context) => {
      const slow = async () => {
        await context.step("slow 1", () => 1);
        await new Promise((resolve) => setTimeout(resolve, 20));
        await context.step("slow 2", () => 2);
        await ok(context);
      };
      const bad = context.step("bad", async () => {
        await new Promise((resolve) => setTimeout(resolve, 200));
        throw new Error("bad");
      });
      await Promise.all([slow(), bad]).catch(() => {});
      await ok(context).catch(() => {});
      return "another way";
    };
    const dataDir = await tempDir();
    const before = await openJobs(handler, { dataDir });
    const taskId = await startJob(before.tasks);
    const asked = async () => (await before.tasks.get(me, taskId)).inputRequests.length === 2;
    await waitUntil(asked);
    await before.close();
    const { tasks } = await openJobs(handler, { dataDir });
    // By now `bad` is recorded, and the handler ends before it comes to `slow 2` again.
    for (const { id } of (await tasks.get(me, taskId)).inputRequests.toReversed()) {
      await tasks.respond(me, taskId, id, { action: "accept", value: "x" }).catch(() => {});
    }
    expect(await ended(tasks, taskId)).toMatchObject({ status: "completed", result: "another way" });
  });
});

describe("a sleep", () => {
  it("is over at the time it was to be over, whatever happened to the process meanwhile", async () => {
    const dataDir = await tempDir();
    let begun = 0;
    const handler: Handler = async (context) => {
      begun += 1;
      await context.sleep(3_600_000);
      return "rested";
    };
    const before = await openJobs(handler, { dataDir });
    const taskId = await startJob(before.tasks);
    await waitUntil(() => recordedSteps(before) === 1);
    await before.close();
    const idle = await openJobs(handler, { dataDir });
    expect(await idle.tasks.get(me, taskId, { waitMs: 300 })).toMatchObject({ status: "working" });
    // It is parked: its time alone brings it back.
    expect(begun).toBe(1);
    await idle.close();
    passTime(before, 3_600_000);
    const { tasks } = await openJobs(handler, { dataDir });
    expect(await ended(tasks, taskId)).toMatchObject({ result: "rested" });
    expect(begun).toBe(2);
  });

  it("of the same length twice is two sleeps", async () => {
    expect(await runJob(shared(), async (c) => [await c.sleep(1), await c.sleep(1)].length)).toMatchObject({
      result: 2,
    });
  });
});

describe("a process that ends", () => {
  it("lets the step that runs be recorded, and the task goes on after it elsewhere", async () => {
    const dataDir = await tempDir();
    const ran: string[] = [];
    const handler: Handler = async (context) => {
      await context.step("one", async () => {
        ran.push("one");
        await new Promise((resolve) => setTimeout(resolve, 300));
      });
      await context.step("two", () => void ran.push("two"));
      return "both";
    };
    const before = await openJobs(handler, { dataDir });
    const taskId = await startJob(before.tasks);
    await waitUntil(() => ran.length === 1);
    await before.close();
    expect(ran).toEqual(["one"]);
    const { tasks } = await openJobs(handler, { dataDir });
    expect(await ended(tasks, taskId)).toMatchObject({ result: "both" });
    expect(ran).toEqual(["one", "two"]);
  });

  it("tells handlers to stop, does not count what they return half done, and runs them again by replay", async () => {
    const dataDir = await tempDir();
    const works = gate();
    const reasons: unknown[] = [];
    const handler: Handler = async (context) => {
      await context.step("begin", () => 1);
      if (reasons.length > 0) return "whole";
      works.open();
      await new Promise((resolve) => context.signal.addEventListener("abort", resolve, { once: true }));
      reasons.push(context.signal.reason);
      return "half";
    };
    const before = await openJobs(handler, { dataDir });
    const taskId = await startJob(before.tasks);
    await works.opened;
    await before.close();
    expect(reasons).toMatchObject([{ name: "TaskStopped", reason: "stop" }]);
    const { tasks } = await openJobs(handler, { dataDir });
    expect(await ended(tasks, taskId)).toMatchObject({ status: "completed", result: "whole" });
  });

  it("leaves a handler with nothing recorded interrupted, unless its kind may run again as a whole", async () => {
    const outcomes: Task[] = [];
    for (const restart of [undefined, "whole"] as const) {
      const dataDir = await tempDir();
      let begun = 0;
      const handler: Handler = async (context) => {
        begun += 1;
        if (begun > 1) return "again";
        return new Promise((_resolve, reject) => {
          context.signal.addEventListener("abort", () => reject(context.signal.reason), { once: true });
        });
      };
      const options = { dataDir, ...(restart !== undefined && { restart }) };
      const before = await openJobs(handler, options);
      const taskId = await startJob(before.tasks);
      await waitUntil(() => begun === 1);
      await before.close();
      const { tasks } = await openJobs(handler, options);
      outcomes.push(await ended(tasks, taskId));
    }
    expect(outcomes).toMatchObject([
      { status: "failed", error: { code: "task_interrupted" } },
      { status: "completed", result: "again" },
    ]);
  });
});
