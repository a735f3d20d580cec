/** Starts `task-worker.ts` over a data folder, and ends it with the test. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

const program = fileURLToPath(new URL("./task-worker.ts", import.meta.url));

export interface Worker {
  readonly pid: number;
  signal(signal: NodeJS.Signals): void;
  /** Lets no line of its handlers run any more. It lives and keeps what it has, until it is killed. */
  hold(): Promise<void>;
  /** Kills it, and waits until it is gone. */
  kill(): Promise<void>;
}

/** Resolves when it takes tasks. */
export async function startWorker(dataDir: string, journal: string): Promise<Worker> {
  const child = spawn(process.execPath, ["--no-warnings", program, dataDir, journal], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const gone = once(child, "close");
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await gone;
  };
  onTestFinished(kill);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const says = async (word: string): Promise<void> => {
    const { value } = await lines.next();
    if (value !== word) throw new Error(`The worker said ${value}, and not ${word}`);
  };
  await says("ready");
  const { pid } = child;
  if (pid === undefined) throw new Error("The worker did not start");
  const hold = async (): Promise<void> => {
    child.stdin.write("hold");
    await says("held");
  };
  return { pid, signal: (signal) => void child.kill(signal), hold, kill };
}
