/** Processes that die or stop in the middle of tasks, while others over the same store live on. */
import { writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Store } from "../../src/store/open-store.ts";
import { openTestStore } from "../support/engine.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitUntil } from "../support/wait-until.ts";
import { linesOf, timesRun } from "./programs/journal.ts";
import { startWorker } from "./programs/start-worker.ts";
import { ended, me } from "./task-store.ts";

/** A store without handlers, to start and watch tasks that other processes run, and the file that those write to. */
async function openWatcher(): Promise<Store & { readonly journal: string }> {
  const dataDir = await tempDir();
  const store = await openTestStore({ dataDir });
  return { ...store, journal: path.join(dataDir, "journal") };
}

describe("several processes", () => {
  it("of which one is killed go on with its task within 5 s, and the step in flight runs once more with its key", async () => {
    const { tasks, dataDir, journal } = await openWatcher();
    const workers = await Promise.all([startWorker(dataDir, journal), startWorker(dataDir, journal)]);
    const until = path.join(dataDir, "go");
    const { task } = await tasks.start(me, { kind: "held", args: { until } });
    await waitUntil(() => timesRun(journal, "slow") === 1);
    const runner = Number(linesOf(journal).find(([what]) => what === "slow")?.[1]);
    await workers.find(({ pid }) => pid === runner)?.kill();
    await waitUntil(() => timesRun(journal, "slow") === 2, 5_000);
    writeFileSync(until, "");
    const other = workers.find(({ pid }) => pid !== runner)?.pid;
    expect(await ended(tasks, task.taskId)).toMatchObject({ status: "completed", result: { by: other } });
    expect(timesRun(journal, "quick")).toBe(1);
    expect(new Set(linesOf(journal).flatMap(([what, , key]) => (what === "slow" ? [key] : []))).size).toBe(1);
  });

  it("that claim 2,000 tasks at once run each exactly once", async () => {
    const { tasks, dataDir, journal } = await openWatcher();
    const ids = new Set<string>();
    await Promise.all(
      Array.from({ length: 2_000 }, async (_, n) => {
        const { task } = await tasks.start(`principal ${n % 20}`, { kind: "once", args: n });
        ids.add(task.taskId);
      }),
    );
    const workers = await Promise.all([startWorker(dataDir, journal), startWorker(dataDir, journal)]);
    await waitUntil(async () => {
      for (let n = 0; n < 20; n += 1) {
        const open = await tasks.list(`principal ${n}`, { status: "working", limit: 1, cursor: null });
        if (open.tasks.length > 0) return false;
      }
      return true;
    }, 40_000);
    const lines = linesOf(journal);
    const begun = lines.filter(([what]) => what === "begin");
    expect(begun).toHaveLength(2_000);
    expect(new Set(begun.map(([, id]) => id))).toEqual(ids);
    expect(lines.filter(([what]) => what === "end")).toHaveLength(2_000);
    expect(new Set(begun.map(([, , pid]) => Number(pid)))).toEqual(new Set(workers.map(({ pid }) => pid)));
    for (let n = 0; n < 20; n += 1) {
      const done = await tasks.list(`principal ${n}`, { status: "completed", limit: 1_000, cursor: null });
      expect(done.tasks).toHaveLength(100);
    }
  });

  it("whose threads are blocked for longer than others wait for a sign do not take a task from each other for ever", async () => {
    const { tasks, dataDir, journal } = await openWatcher();
    await Promise.all([startWorker(dataDir, journal), startWorker(dataDir, journal)]);
    const { task } = await tasks.start(me, { kind: "blocking", args: { ms: 4_500 } });
    expect((await ended(tasks, task.taskId)).status).toBe("completed");
    expect(timesRun(journal, "blocks")).toBeLessThanOrEqual(4);
  });

  it("of which one is stopped past its lease go on without it, and it changes nothing when it comes back", async () => {
    const { tasks, dataDir, journal } = await openWatcher();
    const paused = await startWorker(dataDir, journal);
    const until = path.join(dataDir, "go");
    const { task } = await tasks.start(me, { kind: "held", args: { until } });
    await waitUntil(() => timesRun(journal, "slow") === 1);
    paused.signal("SIGSTOP");
    const other = await startWorker(dataDir, journal);
    await waitUntil(() => timesRun(journal, "slow") === 2);
    writeFileSync(until, "");
    const done = await ended(tasks, task.taskId);
    expect(done).toMatchObject({ status: "completed", result: { by: other.pid } });
    paused.signal("SIGCONT");
    await waitUntil(() => timesRun(journal, "aborted") === 1);
    // A moment for whatever it would still do.
    await sleep(500);
    expect(await tasks.get(me, task.taskId)).toEqual(done);
    const lines = linesOf(journal);
    expect(lines.filter(([what]) => what === "aborted")).toEqual([["aborted", String(paused.pid), "lost"]]);
    expect(timesRun(journal, "quick")).toBe(1);
    expect(lines.filter(([what]) => what === "last")).toEqual([["last", String(other.pid)]]);
    expect(new Set(lines.filter(([what]) => what === "slow").map(([, , key]) => key)).size).toBe(1);
  });
});
