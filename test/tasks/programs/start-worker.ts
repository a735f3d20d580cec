/** Starts `task-worker.ts` over a data folder, and ends it with the test. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

const program = fileURLToPath(new URL("./task-worker.ts", import.meta.url));

export interface Worker {
  readonly pid: number;
  signal(signal: NodeJS.Signals): void;
  /** Kills it, and waits until it is gone. */
  kill(): Promise<void>;
}

/** Resolves when it takes tasks. */
export async function startWorker(dataDir: string, journal: string): Promise<Worker> {
  const child: ChildProcess = spawn(process.execPath, ["--no-warnings", program, dataDir, journal], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const gone = once(child, "close");
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await gone;
  };
  onTestFinished(kill);
  if (child.stdout === null || child.pid === undefined) throw new Error("The worker did not start");
  const [line] = await Promise.race([once(createInterface({ input: child.stdout }), "line"), gone]);
  if (line !== "ready") throw new Error(`The worker ended with ${line} before it was ready`);
  return { pid: child.pid, signal: (signal) => void child.kill(signal), kill };
}
