import { describe, expect, it } from "vitest";
import type { TaskContext } from "../../src/tasks/engine.ts";
import { openTestStore } from "../support/engine.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitUntil } from "../support/wait-until.ts";
import {
  asking,
  begin,
  ended,
  gate,
  me,
  openJobs,
  passTime,
  runJob,
  sharedStore,
  startJob,
  untilAborted,
} from "./task-store.ts";

const shared = sharedStore({ cancelPatienceMs: 400 });

describe("a cancel", () => {
  it("is acknowledged at once, reaches the handler by its signal, and the state tells when the work has stopped", async () => {
    const { tasks } = shared();
    const cleaned = gate();
    const begun = gate();
    let reason: unknown;
    const taskId = await begin(shared(), async (c) => {
      begun.open();
      await untilAborted(c.signal).catch((error: unknown) => {
        reason = error;
      });
      await cleaned.opened;
      return "ignored";
    });
    await begun.opened;
    expect(await tasks.cancel(me, taskId)).toMatchObject({ status: "working", cancelRequested: true });
    await waitUntil(() => reason !== undefined);
    expect(reason).toMatchObject({ name: "TaskStopped", reason: "cancel" });
    expect(await tasks.get(me, taskId)).toMatchObject({ status: "working", cancelRequested: true });
    cleaned.open();
    expect(await ended(tasks, taskId)).toMatchObject({
      status: "cancelled",
      result: undefined,
      error: null,
      cancelRequested: false,
    });
    expect(await tasks.cancel(me, taskId)).toMatchObject({ status: "cancelled" });
  });

  it("makes waits and further steps of the handler reject, and nothing more is begun", async () => {
    const { tasks } = shared();
    const met: unknown[] = [];
    let began = false;
    const taskId = await begin(shared(), async (c) => {
      await c.needInput({ prompt: "?" }).catch((error: unknown) => met.push(error));
      await c
        .step("after", () => {
          began = true;
        })
        .catch((error: unknown) => met.push(error));
      await c.sleep(1).catch((error: unknown) => met.push(error));
      await c.progress("still here").catch((error: unknown) => met.push(error));
    });
    await asking(tasks, taskId);
    await tasks.cancel(me, taskId);
    expect(await ended(tasks, taskId)).toMatchObject({ status: "cancelled", inputRequests: [] });
    expect(met).toHaveLength(4);
    for (const error of met) expect(error).toMatchObject({ name: "TaskStopped", reason: "cancel" });
    expect(began).toBe(false);
  });

  it("that a handler does not heed is over when its patience is, and what it does then counts no more", async () => {
    const { tasks } = shared();
    const release = gate();
    let late: Promise<unknown> = Promise.resolve();
    const begun = gate();
    const taskId = await begin(shared(), async (c) => {
      begun.open();
      await release.opened;
      late = c.step("late", () => 1);
      return "late";
    });
    await begun.opened;
    await tasks.cancel(me, taskId);
    const task = await ended(tasks, taskId);
    expect(task).toMatchObject({ status: "cancelled" });
    release.open();
    await expect(waitUntil(() => false, 50).catch(() => late)).rejects.toMatchObject({ name: "TaskStopped" });
    expect(await tasks.get(me, taskId)).toEqual(task);
  });

  it("of a task that nobody has begun is over at once, and its handler never runs", async () => {
    const dataDir = await tempDir();
    const { tasks } = await openTestStore({ dataDir });
    const { task } = await tasks.start(me, { kind: "job", args: null });
    expect(await tasks.cancel(me, task.taskId)).toMatchObject({ status: "cancelled" });
    let ran = false;
    const other = await openJobs(
      () => {
        ran = true;
      },
      { dataDir },
    );
    expect(await other.tasks.get(me, task.taskId, { waitMs: 300 })).toMatchObject({ status: "cancelled" });
    expect(ran).toBe(false);
  });

  it("of a task that waits with nobody to hold it is over at once, and its answer comes too late", async () => {
    const dataDir = await tempDir();
    const before = await openJobs((c) => c.needInput({ prompt: "?" }), { dataDir });
    const taskId = await startJob(before.tasks);
    await asking(before.tasks, taskId);
    await before.close();
    const { tasks } = await openTestStore({ dataDir });
    expect(await tasks.cancel(me, taskId)).toMatchObject({ status: "cancelled", inputRequests: [] });
    await expect(tasks.respond(me, taskId, null, { action: "accept", value: "x" })).rejects.toMatchObject({
      code: "task_not_waiting",
    });
  });

  it("reaches a handler in another process", async () => {
    const dataDir = await tempDir();
    let aborted = false;
    const begun = gate();
    const runs = await openJobs(
      async (c: TaskContext) => {
        begun.open();
        await untilAborted(c.signal).catch(() => {});
        aborted = true;
      },
      { dataDir },
    );
    const taskId = await startJob(runs.tasks);
    const { tasks } = await openTestStore({ dataDir });
    await begun.opened;
    expect(await tasks.cancel(me, taskId)).toMatchObject({ cancelRequested: true });
    expect(await ended(tasks, taskId)).toMatchObject({ status: "cancelled" });
    expect(aborted).toBe(true);
  });

  it("of a task that has ended changes nothing", async () => {
    const task = await runJob(shared(), () => 1);
    expect(await shared().tasks.cancel(me, task.taskId)).toEqual(task);
  });
});

describe("a deadline", () => {
  it("ends a running task failed, and its handler is told why", async () => {
    const { tasks } = shared();
    let reason: unknown;
    const taskId = await begin(
      shared(),
      async (c) => {
        await untilAborted(c.signal).catch((error: unknown) => {
          reason = error;
        });
        return "too late";
      },
      { deadlineMs: 100 },
    );
    const task = await ended(tasks, taskId);
    expect(task).toMatchObject({ status: "failed", error: { code: "task_interrupted" }, result: undefined });
    expect(task.error?.message).toMatch(/deadline/);
    expect(task.deadlineAt).toBeInstanceOf(Date);
    expect(reason).toMatchObject({ reason: "deadline" });
  });

  it("ends a task that waits for an answer, and one whose place in the line never came", async () => {
    const store = await openJobs((c) => c.needInput({ prompt: "?" }), { tasks: { maxWaiting: 0 } });
    const { task: waits } = await store.tasks.start(me, { kind: "job", args: null, deadlineMs: 3_600_000 });
    const { task: foreign } = await store.tasks.start(me, {
      kind: "other",
      args: null,
      deadlineMs: 3_600_000,
    });
    await asking(store.tasks, waits.taskId);
    await waitUntil(async () => {
      passTime(store, 3_600_000);
      const tasks = await Promise.all([waits, foreign].map(({ taskId }) => store.tasks.get(me, taskId)));
      return tasks.every(({ status }) => status === "failed");
    });
    expect(await store.tasks.get(me, foreign.taskId)).toMatchObject({ error: { code: "task_interrupted" } });
  });
});

describe("an ended task", () => {
  it("is unknown once it is past its time, and removed on the second look of the sweep", async () => {
    const store = await openJobs(() => "kept for a while");
    const { tasks } = store;
    const taskId = await startJob(tasks);
    const { task: short } = await tasks.start(me, { kind: "job", args: null, ttlMs: 60_000 });
    await ended(tasks, taskId);
    await ended(tasks, short.taskId);
    passTime(store, 61_000);
    await expect(tasks.get(me, short.taskId)).rejects.toMatchObject({ code: "unknown_task" });
    expect(await tasks.get(me, taskId)).toMatchObject({ result: "kept for a while" });
    expect(
      (await tasks.list(me, { status: null, limit: 10, cursor: null })).tasks.map((one) => one.taskId),
    ).toEqual([taskId]);
    expect(await tasks.sweep()).toEqual({ removedTasks: 0 });
    passTime(store, 3_600_001);
    expect(await tasks.sweep()).toEqual({ removedTasks: 1 });
    passTime(store, 86_400_000);
    await expect(tasks.get(me, taskId)).rejects.toMatchObject({ code: "unknown_task" });
    await tasks.sweep();
    // The clock comes back before the second look: nothing is lost.
    passTime(store, -86_400_000);
    passTime(store, 3_600_001);
    expect(await tasks.sweep()).toEqual({ removedTasks: 0 });
    expect(await tasks.get(me, taskId)).toMatchObject({ result: "kept for a while" });
  });
});
