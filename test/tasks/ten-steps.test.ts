/** A task of ten steps and a question, whose processes are killed one after the other; a file counts what has run. */
import { writeFileSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Store } from "../../src/store/open-store.ts";
import type { Task } from "../../src/tasks/engine.ts";
import { openTestStore } from "../support/engine.ts";
import { seeded } from "../support/seeded.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitUntil } from "../support/wait-until.ts";
import { hasNoted, linesOf } from "./programs/journal.ts";
import { startWorker, type Worker } from "./programs/start-worker.ts";
import { asking, ended, me } from "./task-store.ts";

const stepMs = 60;
const finished = {
  status: "completed",
  result: { answer: "yes", squares: [1, 4, 9, 16, 25, 36, 49, 64, 81, 100] },
};

/** The task, started in a store without handlers, and all that is known of it from outside of the processes that run it. */
class TenSteps {
  readonly dataDir: string;
  readonly journal: string;
  readonly taskId: string;
  readonly #tasks: Store["tasks"];
  readonly #rows: DatabaseSync;
  /** Processes in the order of their death, each with the steps that had begun to run by then and were not recorded. */
  readonly #kills: { readonly pid: number; readonly inFlight: readonly string[] }[] = [];

  private constructor({ dataDir, tasks }: Store, taskId: string) {
    this.dataDir = dataDir;
    this.journal = path.join(dataDir, "journal");
    this.taskId = taskId;
    this.#tasks = tasks;
    this.#rows = new DatabaseSync(path.join(dataDir, "state.sqlite"), { readOnly: true, timeout: 5_000 });
    onTestFinished(() => this.#rows.close());
  }

  /** The gated steps last until they are let go. */
  static async start(gated: readonly number[]): Promise<TenSteps> {
    const dataDir = await tempDir();
    const store = await openTestStore({ dataDir });
    const args = { stepMs, gated, gates: dataDir };
    return new TenSteps(store, (await store.tasks.start(me, { kind: "ten-steps", args })).task.taskId);
  }

  startWorker(): Promise<Worker> {
    return startWorker(this.dataDir, this.journal);
  }

  async untilNoted(what: string, { pid }: Worker): Promise<void> {
    await waitUntil(() => hasNoted(this.journal, what, pid));
  }

  /** Of the steps and the question. */
  recorded(): string[] {
    return this.#rows
      .prepare("SELECT name FROM step WHERE state = 'done'")
      .all()
      .map(({ name }) => String(name).replace(" ", "-"));
  }

  get(): Promise<Task> {
    return this.#tasks.get(me, this.taskId);
  }

  asking(): Promise<Task> {
    return asking(this.#tasks, this.taskId);
  }

  async kill(worker: Worker): Promise<void> {
    await worker.kill();
    const recorded = this.recorded();
    // Another process may have gone on by now: what it runs now was not recorded when it began to.
    const dead = new Set([...this.#kills.map(({ pid }) => pid), worker.pid]);
    const open = new Set(this.#steps((pid) => !dead.has(pid)));
    const begun = new Set(this.#steps((pid) => dead.has(pid)));
    const inFlight = [...begun].filter((name) => !recorded.includes(name) || open.has(name));
    expect(inFlight.length).toBeLessThanOrEqual(1);
    this.#kills.push({ pid: worker.pid, inFlight });
  }

  /** Answers while no line of the handler can run, and kills the process at once. */
  async answerAndKill(worker: Worker, question: string): Promise<void> {
    await this.untilNoted("asks", worker);
    await worker.hold();
    const answer = { action: "accept", value: "yes" } as const;
    const acknowledged = await this.#tasks.respond(me, this.taskId, question, answer);
    await this.kill(worker);
    expect(acknowledged).toMatchObject({ status: "working", inputRequests: [] });
    // It died before it knew of the answer.
    expect(linesOf(this.journal).filter(([what]) => what === "answered")).toEqual([]);
  }

  letGo(step: number): void {
    writeFileSync(path.join(this.dataDir, `step-${step}`), "");
  }

  ended(): Promise<Task> {
    return ended(this.#tasks, this.taskId);
  }

  /** No step has run twice in one process, and in a later one only that which was in flight at the kill before; each with its one key. */
  expectStepsRunOnce(last: Worker): void {
    const lives = [...this.#kills.map(({ pid }) => pid), last.pid];
    expect(this.#steps((pid) => !lives.includes(pid))).toEqual([]);
    const before = new Set<string>();
    for (const [life, pid] of lives.entries()) {
      const own = this.#steps((by) => by === pid);
      expect(own).toEqual([...new Set(own)]);
      const again = own.filter((name) => before.has(name));
      expect(this.#kills[life - 1]?.inFlight ?? []).toEqual(expect.arrayContaining(again));
      for (const name of own) before.add(name);
    }
    const keys = new Map<string, Set<string>>();
    for (const [what = "", , key = ""] of this.#stepLines())
      keys.set(what, (keys.get(what) ?? new Set()).add(key));
    expect([...keys.keys()].sort()).toEqual(Array.from({ length: 10 }, (_, n) => `step-${n + 1}`).sort());
    expect([...keys.values()].map(({ size }) => size)).toEqual(Array(10).fill(1));
    expect(new Set([...keys.values()].flatMap((one) => [...one])).size).toBe(10);
  }

  /** Each process that came past the question had the answer that was given, and `first` was the first to. */
  expectAnswerKept(first: Worker): void {
    const lines = linesOf(this.journal).filter(([what]) => what === "answered");
    expect(new Set(lines.map(([, , answer]) => answer))).toEqual(new Set(["yes"]));
    expect(lines[0]?.[1]).toBe(String(first.pid));
  }

  #stepLines(): string[][] {
    return linesOf(this.journal).filter(([what]) => what?.startsWith("step-"));
  }

  /** In the order in which they ran. */
  #steps(by: (pid: number) => boolean): string[] {
    return this.#stepLines().flatMap(([what = "", pid]) => (by(Number(pid)) ? [what] : []));
  }
}

describe("a task of ten steps and a question", () => {
  // Thirty-one starts of a process, on whatever machine.
  it("killed at 30 random moments ends right: no recorded step runs again, the one in flight once for each kill with its key, the question keeps its id, and an answer given just before a kill is kept", {
    timeout: 180_000,
  }, async () => {
    const chance = seeded();
    // The run may not be over before its kills are.
    const task = await TenSteps.start([10]);
    const kills = 30;
    // Ten steps and a question are spread over the kills; after the fifth step there is the question.
    const recordedBy = (kill: number): number => Math.floor((kill * 11) / (kills + 1));
    const answering = Math.ceil((6 * (kills + 1)) / 11);
    const questions = new Set<string>();
    let answered = false;
    let afterAnswer: Worker | null = null;
    for (let kill = 1; kill <= kills; kill += 1) {
      const worker = await task.startWorker();
      if (kill === answering) {
        const [question] = (await task.get()).inputRequests;
        questions.add(JSON.stringify(question));
        await task.answerAndKill(worker, question?.id ?? "");
        answered = true;
        continue;
      }
      await waitUntil(() => task.recorded().length >= recordedBy(kill));
      // It is killed once at least while the question waits.
      if (kill === answering - 1) await task.asking();
      if (kill === answering + 1) {
        afterAnswer = worker;
        await task.untilNoted("answered", worker);
      }
      if (kill === kills) await task.untilNoted("step-10", worker);
      await sleep(chance.next() * stepMs * 1.5);
      const { inputRequests } = await task.get();
      if (answered) expect(inputRequests).toEqual([]);
      for (const one of inputRequests) questions.add(JSON.stringify(one));
      await task.kill(worker);
    }
    const last = await task.startWorker();
    await task.untilNoted("step-10", last);
    task.letGo(10);
    expect(await task.ended()).toMatchObject(finished);
    task.expectStepsRunOnce(last);
    expect(questions.size).toBe(1);
    expect(afterAnswer).not.toBeNull();
    if (afterAnswer !== null) task.expectAnswerKept(afterAnswer);
  });

  it("goes on in a second living process each time the first is killed, with the same promises: in a step, while the question waits, just after its answer", {
    timeout: 120_000,
  }, async () => {
    const chance = seeded();
    const task = await TenSteps.start([2, 4, 6, 7, 9, 10]);
    let owner = await task.startWorker();
    await task.untilNoted("run", owner);
    const startSpare = (): Promise<Worker> => {
      const starting = task.startWorker();
      // Where the test fails before, nobody waits for it.
      starting.catch(() => {});
      return starting;
    };
    let spare = startSpare();
    /** Kills the one that has the task. The other, which has lived all the while, takes it over; then one more is started. */
    const takenOver = async (kill: (owner: Worker) => Promise<void>): Promise<void> => {
      const other = await spare;
      await kill(owner);
      await task.untilNoted("run", other);
      owner = other;
      spare = startSpare();
    };
    /** At some moment from this step on, and before the next one that is gated has ended. */
    const fromStep = (n: number): Promise<void> =>
      takenOver(async (worker) => {
        await task.untilNoted(`step-${n}`, worker);
        if (n < 10) task.letGo(n);
        await sleep(chance.next() * stepMs * 2);
        await task.kill(worker);
      });
    await fromStep(2);
    await fromStep(4);
    const { inputRequests } = await task.asking();
    await takenOver(async (worker) => {
      await task.untilNoted("asks", worker);
      await task.kill(worker);
    });
    // Asked by one process, which is dead, and answered while another has the task.
    expect((await task.get()).inputRequests).toEqual(inputRequests);
    await takenOver((worker) => task.answerAndKill(worker, inputRequests[0]?.id ?? ""));
    const afterAnswer = owner;
    await fromStep(6);
    await fromStep(7);
    await fromStep(9);
    // Which has not ended: it is in flight for certain, and runs again.
    await fromStep(10);
    await task.untilNoted("step-10", owner);
    task.letGo(10);
    expect(await task.ended()).toMatchObject(finished);
    task.expectStepsRunOnce(owner);
    task.expectAnswerKept(afterAnswer);
    await spare;
  });
});
