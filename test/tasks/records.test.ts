import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import type { Task } from "../../src/tasks/engine.ts";
import { openTestStore } from "../support/engine.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitUntil } from "../support/wait-until.ts";
import {
  begin,
  ended,
  gate,
  kindOf,
  me,
  openJobs,
  passTime,
  runJob,
  sharedStore,
  startJob,
} from "./task-store.ts";

const shared = sharedStore();

describe("a task of another principal", () => {
  it("an unknown one and an expired one are one and the same to every method", async () => {
    const store = await openJobs(() => 1);
    const { tasks } = store;
    const taskId = await startJob(tasks);
    await ended(tasks, taskId);
    const answers: unknown[] = [];
    const ask = async (principal: string, id: string) => {
      for (const call of [
        () => tasks.get(principal, id),
        () => tasks.get(principal, id, { waitMs: 10 }),
        () => tasks.cancel(principal, id),
        () => tasks.respond(principal, id, null, { action: "decline" }),
        () => tasks.respond(principal, id, "input_x", { action: "decline" }),
      ]) {
        answers.push(await call().catch(({ code, message }) => ({ code, message })));
      }
    };
    await ask("mallory", taskId);
    await ask(me, "task_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    await ask(me, "task_'; DROP TABLE task; --");
    passTime(store, 86_400_001);
    await ask(me, taskId);
    expect(answers).toHaveLength(20);
    for (const answer of answers)
      expect(answer).toEqual({ code: "unknown_task", message: "There is no such task." });
    expect((await tasks.list("mallory", { status: null, limit: 10, cursor: null })).tasks).toEqual([]);
  });
});

describe("an idempotency key", () => {
  it("with the same arguments gives the same task, with others a conflict, and belongs to principal and kind", async () => {
    const { tasks } = shared();
    tasks.register(kindOf("keyed", () => 1));
    const start = (principal: string, kind: string, args: { a?: number; b?: number }) =>
      tasks.start(principal, { kind, args, idempotencyKey: "key" });
    const first = await start(me, "keyed", { a: 1, b: 2 });
    const again = await start(me, "keyed", { b: 2, a: 1 });
    expect([first.created, again.created]).toEqual([true, false]);
    expect(again.task.taskId).toBe(first.task.taskId);
    await expect(start(me, "keyed", { a: 2 })).rejects.toMatchObject({ code: "idempotency_conflict" });
    expect((await start("other", "keyed", { a: 2 })).created).toBe(true);
    expect((await start(me, "keyed-too", { a: 2 })).created).toBe(true);
  });

  it("used by many starts at once makes one task", async () => {
    const { tasks } = shared();
    let ran = 0;
    tasks.register(
      kindOf("at-once", () => {
        ran += 1;
      }),
    );
    const starts = await Promise.all(
      Array.from({ length: 50 }, () => tasks.start(me, { kind: "at-once", args: 1, idempotencyKey: "k" })),
    );
    expect(new Set(starts.map(({ task }) => task.taskId)).size).toBe(1);
    expect(starts.filter(({ created }) => created)).toHaveLength(1);
    await ended(tasks, starts[0]?.task.taskId ?? "");
    expect(ran).toBe(1);
  });

  it("ends with its task", async () => {
    const store = await openJobs(() => 1);
    const start = () => store.tasks.start(me, { kind: "job", args: null, idempotencyKey: "k" });
    const { task } = await start();
    await ended(store.tasks, task.taskId);
    passTime(store, 86_400_001);
    const later = await start();
    expect(later.created).toBe(true);
    expect(later.task.taskId).not.toBe(task.taskId);
  });
});

describe("a start", () => {
  it("with arguments that are not JSON, or a key or deadline that is none, is refused and names the parameter", async () => {
    const { tasks } = shared();
    for (const [request, param] of [
      [{ args: { at: new Date() } as never }, "args"],
      [{ args: "x".repeat(1 << 20) }, "args"],
      [{ idempotencyKey: "" }, "idempotencyKey"],
      [{ idempotencyKey: "k".repeat(256) }, "idempotencyKey"],
      [{ deadlineMs: 0 }, "deadlineMs"],
      [{ deadlineMs: Number.NaN }, "deadlineMs"],
    ] as const) {
      await expect(tasks.start(me, { kind: "k", args: null, ...request })).rejects.toMatchObject({
        code: "invalid_param",
        options: { param },
      });
    }
  });

  it("keeps no longer than the engine does, whatever it asks for", async () => {
    const { tasks } = shared();
    tasks.register(kindOf("brief", () => 1));
    const { task } = await tasks.start(me, { kind: "brief", args: null, ttlMs: 1e12 });
    const { endedAt, expiresAt } = await ended(tasks, task.taskId);
    expect((expiresAt?.getTime() ?? 0) - (endedAt?.getTime() ?? 0)).toBe(86_400_000);
  });
});

describe("a list", () => {
  it("goes page by page in the order of creation, whatever ends meanwhile, and shows no results", async () => {
    const hold = gate();
    const { tasks } = await openJobs(() => hold.opened.then(() => "x".repeat(1000)), {
      tasks: { concurrency: 50, perPrincipal: 50 },
    });
    const ids: string[] = [];
    for (let n = 0; n < 25; n += 1) ids.push(await startJob(tasks));
    const seen: Task[] = [];
    let cursor: string | null = null;
    do {
      const page = await tasks.list(me, { status: null, limit: 10, cursor });
      seen.push(...page.tasks);
      cursor = page.nextCursor;
      hold.open();
      if (seen.length === 10) await Promise.all(ids.map((id) => ended(tasks, id)));
    } while (cursor !== null);
    expect(new Set(seen.map(({ taskId }) => taskId))).toEqual(new Set(ids));
    expect(seen).toHaveLength(25);
    for (const task of seen) expect(task.result).toBeUndefined();
    expect((await tasks.list(me, { status: "working", limit: 30, cursor: null })).tasks).toEqual([]);
    expect((await tasks.list(me, { status: "completed", limit: 30, cursor: null })).tasks).toHaveLength(25);
    await expect(tasks.list(me, { status: null, limit: 10, cursor: "nonsense" })).rejects.toMatchObject({
      code: "invalid_param",
      options: { param: "cursor" },
    });
  });
});

describe("progress", () => {
  it("is seen by who waits for it, in this process and another, and its fraction never falls", async () => {
    const dataDir = await tempDir();
    const step = gate();
    const store = await openJobs(
      async (context) => {
        await context.progress("half", 0.5);
        await step.opened;
        await context.progress("odd", 0.2);
        await context.progress("more", Number.NaN);
        await context.progress("over", 7);
      },
      { dataDir },
    );
    const other = await openTestStore({ dataDir });
    const taskId = await startJob(store.tasks);
    for (const { tasks } of [store, other]) {
      await waitUntil(
        async () =>
          (await tasks.get(me, taskId, { waitMs: 100, untilProgress: true })).progress?.fraction === 0.5,
      );
    }
    const seen: unknown[] = [];
    const unwatch = other.tasks.watch(me, taskId, (task) => seen.push(task.progress?.fraction));
    const waiting = store.tasks.get(me, taskId, { waitMs: 20_000, untilProgress: true });
    await new Promise((resolve) => setTimeout(resolve, 50));
    step.open();
    expect((await waiting).progress?.fraction).toBeGreaterThanOrEqual(0.5);
    expect(await ended(store.tasks, taskId)).toMatchObject({ progress: { message: "over", fraction: 1 } });
    await waitUntil(() => seen.includes(1));
    unwatch();
  });

  it("in any number costs few writes, and the last one is kept", async () => {
    const task = await runJob(shared(), async (context) => {
      for (let n = 1; n <= 5_000; n += 1) await context.progress(`at ${n}`, n / 10_000);
    });
    expect(task.progress).toEqual({ message: "at 5000", fraction: 0.5 });
  });
});

describe("waiting", () => {
  it("ends at once when the task does, when its time is over, and when its caller leaves", async () => {
    const { tasks } = shared();
    const hold = gate();
    const taskId = await begin(shared(), () => hold.opened);
    expect(await tasks.get(me, taskId, { waitMs: 30 })).toMatchObject({ status: "working" });
    const leaving = new AbortController();
    const left = tasks.get(me, taskId, { waitMs: 40_000, signal: leaving.signal });
    leaving.abort();
    expect(await left).toMatchObject({ status: "working" });
    const waiting = Array.from({ length: 10 }, () => tasks.get(me, taskId, { waitMs: 40_000 }));
    hold.open();
    for (const task of await Promise.all(waiting)) expect(task.status).toBe("completed");
  });

  it("is answered when the engine closes", async () => {
    const { tasks, close } = await openTestStore();
    const { task } = await tasks.start(me, { kind: "nobody", args: null });
    const waiting = tasks.get(me, task.taskId, { waitMs: 40_000 });
    await new Promise((resolve) => setTimeout(resolve, 20));
    await close();
    expect(await waiting).toMatchObject({ status: "working" });
  });

  it("by 1,000 pollers costs next to no work while nothing changes", async () => {
    const { tasks } = shared();
    const hold = gate();
    const ids = await Promise.all(Array.from({ length: 4 }, () => begin(shared(), () => hold.opened)));
    const pollers = Array.from({ length: 1_000 }, (_, n) =>
      tasks.get(me, ids[n % 4] ?? "", { waitMs: 30_000 }),
    );
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const before = process.cpuUsage();
    const from = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    const { user, system } = process.cpuUsage(before);
    const share = (user + system) / 1_000 / (performance.now() - from);
    hold.open();
    for (const task of await Promise.all(pollers)) expect(task.status).toBe("completed");
    expect(share).toBeLessThan(0.25);
  });
});

describe("a process", () => {
  it("runs no more handlers at once than it may, of one principal no more than its share, and everybody gets a turn", async () => {
    let running = 0;
    let most = 0;
    const mine = new Map<string, number>();
    const order: string[] = [];
    const holds = gate();
    const { tasks } = await openTestStore({ tasks: { concurrency: 4, perPrincipal: 2 } });
    const ids: [string, string][] = [];
    const start = async (principal: string) =>
      ids.push([principal, (await tasks.start(principal, { kind: "job", args: null })).task.taskId]);
    for (let n = 0; n < 40; n += 1) await start("greedy");
    for (let n = 0; n < 3; n += 1) await start(`modest ${n}`);
    tasks.register(
      kindOf("job", async (context) => {
        const { principal } = context;
        order.push(principal);
        running += 1;
        mine.set(principal, (mine.get(principal) ?? 0) + 1);
        most = Math.max(most, running);
        expect(mine.get(principal)).toBeLessThanOrEqual(2);
        await context.step("work", () =>
          Promise.race([holds.opened, new Promise((resolve) => setTimeout(resolve, 10))]).then(() => {}),
        );
        mine.set(principal, (mine.get(principal) ?? 0) - 1);
        running -= 1;
      }),
    );
    for (const [principal, id] of ids)
      expect(await ended(tasks, id, principal)).toMatchObject({ status: "completed" });
    expect(most).toBeLessThanOrEqual(4);
    expect(most).toBeGreaterThan(1);
    for (let n = 0; n < 3; n += 1) expect(order.indexOf(`modest ${n}`)).toBeLessThan(12);
  });

  it("gives the place of a handler that waits to another, and the wait ends in a place again", async () => {
    let running = 0;
    let most = 0;
    const { tasks } = await openJobs(
      async (context) => {
        const work = async () => {
          running += 1;
          most = Math.max(most, running);
          await new Promise((resolve) => setTimeout(resolve, 20));
          running -= 1;
        };
        await context.step("before", work);
        await context.sleep(50);
        await context.step("after", work);
      },
      { tasks: { concurrency: 2, perPrincipal: 2 } },
    );
    const ids = await Promise.all(Array.from({ length: 12 }, () => startJob(tasks)));
    for (const id of ids) expect(await ended(tasks, id)).toMatchObject({ status: "completed" });
    expect(most).toBeLessThanOrEqual(2);
  });

  it("keeps its task when the clock jumps, though another one stands by that would take it over", async () => {
    const dataDir = await tempDir();
    const hold = gate();
    let begun = 0;
    const handler = async () => {
      begun += 1;
      await hold.opened;
    };
    const runs = await openJobs(handler, { dataDir, restart: "whole" });
    const taskId = await startJob(runs.tasks);
    await waitUntil(() => begun === 1);
    await openJobs(handler, { dataDir, restart: "whole" });
    const rows = new DatabaseSync(path.join(dataDir, "state.sqlite"), { timeout: 5_000 });
    for (const jump of [3_600_000, -7_200_000]) {
      rows.exec(`UPDATE process SET seen_at = seen_at + ${jump}`);
      await new Promise((resolve) => setTimeout(resolve, 1_200));
    }
    rows.close();
    hold.open();
    expect(await ended(runs.tasks, taskId)).toMatchObject({ status: "completed" });
    expect(begun).toBe(1);
  });
});
