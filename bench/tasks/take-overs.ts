/** Kills processes in the middle of a step, and waits until the same step runs in another one. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { TaskEngine } from "longshore/tasks";
import { median } from "../statistics.ts";
import type { JobResult } from "./jobs.ts";

const program = fileURLToPath(new URL("./held-worker.ts", import.meta.url));
const patienceMs = 30_000;
/** Processes look after each other once a second: kills fall anywhere between two looks. */
const lookMs = 1_000;

interface Worker {
  readonly child: ChildProcess;
  readonly lines: Interface;
}

/** The next thing that the process says. */
async function said({ lines }: Worker, expected: string): Promise<void> {
  const [line] = await once(lines, "line", { signal: AbortSignal.timeout(patienceMs) });
  if (line !== expected) throw new Error(`A process said ${line}, not ${expected}`);
}

async function kill({ child }: Worker): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}

export class TakeOvers {
  readonly #tasks: TaskEngine;
  readonly #dataDir: string;
  readonly #workers = new Set<Worker>();
  /** Runs the task. */
  #holder: Worker | null = null;

  constructor(tasks: TaskEngine, dataDir: string) {
    this.#tasks = tasks;
    this.#dataDir = dataDir;
  }

  /** The time is the median of them, so that it stands for one. */
  async measure(kills: number): Promise<JobResult> {
    const seconds: number[] = [];
    for (let n = 0; n < kills; n += 1) {
      const holder = this.#holder ?? (await this.#begin());
      const other = await this.#startWorker();
      await sleep(Math.random() * lookMs);
      const taken = said(other, "runs");
      const killedAt = performance.now();
      const gone = kill(holder);
      await taken;
      seconds.push((performance.now() - killedAt) / 1000);
      await gone;
      this.#workers.delete(holder);
      this.#holder = other;
    }
    return { seconds: median(seconds), amount: 1 };
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#workers].map(kill));
  }

  async #begin(): Promise<Worker> {
    const worker = await this.#startWorker();
    const runs = said(worker, "runs");
    await this.#tasks.start("caller", { kind: "held", args: null });
    await runs;
    return worker;
  }

  async #startWorker(): Promise<Worker> {
    const child = spawn(process.execPath, [program, this.#dataDir], { stdio: ["pipe", "pipe", "inherit"] });
    const worker = { child, lines: createInterface({ input: child.stdout }) };
    this.#workers.add(worker);
    await said(worker, "ready");
    return worker;
  }
}
