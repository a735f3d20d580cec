/**
 * The built server as a process of its own, which can be stopped, killed and started again on the same data folder and port.
 * Whatever a test forgets is killed when its file ends.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readlinkSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect } from "vitest";
import { cleanEnv } from "./built-server.ts";

/** `LONGSHORE_TEST_BINARY` names another build, an installed package for example. */
export const binary =
  process.env.LONGSHORE_TEST_BINARY ?? fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

export interface ServerOptions {
  readonly dataDir: string;
  /** Default 0: any free one. Must be given where a public URL is, which does not tell it. */
  readonly port?: number;
  readonly flags?: readonly string[];
  /** Put before the command: a program that changes something and becomes the command. */
  readonly wrapper?: readonly string[];
}

export interface ServerProcess {
  readonly pid: number;
  readonly port: number;
  /** Base of all URLs, for this machine. */
  readonly url: string;
  readonly mcpUrl: string;
  readonly dataDir: string;
  readonly options: ServerOptions;
  /** What it has written to stderr. */
  log(): string;
  isRunning(): boolean;
  signal(name: NodeJS.Signals): void;
  /** SIGKILL: no handler runs, nothing is flushed. Resolves when the process is gone. */
  kill(): Promise<void>;
  /** SIGTERM; resolves with the exit status, and fails where it takes longer than `withinMs`. */
  stop(withinMs?: number): Promise<number | null>;
}

const startPatienceMs = 40_000;
const alive = new Set<ChildProcess>();

process.on("exit", () => {
  for (const child of alive) child.kill("SIGKILL");
});

export async function startServer(options: ServerOptions): Promise<ServerProcess> {
  const { dataDir, port = 0, flags = [], wrapper = [] } = options;
  const [command = process.execPath, ...args] = [
    ...wrapper,
    process.execPath,
    binary,
    "serve",
    "--json",
    "--port",
    String(port),
    "--data-dir",
    dataDir,
    // A small disk must not decide how tests end; tests of that setting give their own.
    ...(flags.includes("--min-free-bytes") ? [] : ["--min-free-bytes", "0"]),
    ...flags,
  ];
  const child = spawn(command, args, { env: cleanEnv(), stdio: ["ignore", "pipe", "pipe"] });
  alive.add(child);
  child.once("exit", () => alive.delete(child));
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    log = (log + text).slice(-1_000_000);
  });
  const exited = once(child, "exit");
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  const kill = async (): Promise<void> => {
    if (isRunning()) child.kill("SIGKILL");
    await exited;
  };
  try {
    const { mcpUrl, pid } = JSON.parse(await firstLine(child)) as { mcpUrl: string; pid: number };
    const actualPort = port === 0 ? Number(new URL(mcpUrl).port) : port;
    return {
      pid,
      port: actualPort,
      url: `http://127.0.0.1:${actualPort}`,
      mcpUrl: `http://127.0.0.1:${actualPort}/mcp`,
      dataDir,
      options: { ...options, port: actualPort },
      log: () => log,
      isRunning,
      signal: (name) => void child.kill(name),
      kill,
      async stop(withinMs = 15_000) {
        if (!isRunning()) return child.exitCode;
        child.kill("SIGTERM");
        let timer: NodeJS.Timeout | undefined;
        const late = new Promise<never>((_, reject) => {
          timer = setTimeout(
            () => reject(new Error(`the server did not stop within ${withinMs} ms`)),
            withinMs,
          );
        });
        try {
          await Promise.race([exited, late]);
        } finally {
          clearTimeout(timer);
        }
        return child.exitCode;
      },
    };
  } catch (error) {
    await kill();
    throw new Error(`the server did not start: ${error}\n${log}`);
  }
}

async function firstLine(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error("no output to read");
  const timer = setTimeout(() => child.kill("SIGKILL"), startPatienceMs);
  try {
    for await (const line of createInterface({ input: child.stdout })) return line;
  } finally {
    clearTimeout(timer);
    // What it prints afterwards must not fill the pipe.
    child.stdout.resume();
  }
  throw new Error("it ended without a word");
}

/** One server for a whole file, on a folder of its own inside another that only it uses. */
export interface ServerInUse {
  readonly server: ServerProcess;
  readonly url: string;
  /** Holds the data folder and nothing else but what tests put there. */
  readonly folder: string;
  /** SIGKILL and a new start: same data folder, same port, same flags. */
  killAndStart(): Promise<ServerProcess>;
  /** Starts again what a test has killed. */
  start(): Promise<ServerProcess>;
}

export function useServer(options: Omit<ServerOptions, "dataDir"> = {}): ServerInUse {
  let folder = "";
  let current: ServerProcess | undefined;
  const server = (): ServerProcess => {
    if (current === undefined) throw new Error("the server is not started yet");
    return current;
  };
  const start = async (): Promise<ServerProcess> => {
    current = await startServer(server().options);
    return current;
  };
  beforeAll(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), "longshore-e2e-"));
    current = await startServer({ ...options, dataDir: path.join(folder, "data") });
  });
  afterAll(async () => {
    try {
      if (current?.isRunning() === true) {
        expect(await current.stop()).toBe(0);
        expect(current.log()).toContain('"event":"server.stopped"');
        expect(current.log()).not.toMatch(/unhandled|"event":"server\.fault"/i);
      }
    } finally {
      await current?.kill();
      await rm(folder, { recursive: true, force: true });
    }
  });
  return {
    get server() {
      return server();
    },
    get url() {
      return server().url;
    },
    get folder() {
      return folder;
    },
    start,
    async killAndStart() {
      await server().kill();
      return start();
    },
  };
}

/** Folder for one file of tests, for those that start their servers themselves. */
export function useFolder(): { readonly path: string } {
  let folder = "";
  beforeAll(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), "longshore-e2e-"));
  });
  afterAll(async () => {
    const left = [...alive].map(gone);
    await Promise.all(left);
    await rm(folder, { recursive: true, force: true });
  });
  return {
    get path() {
      return folder;
    },
  };
}

async function gone(child: ChildProcess): Promise<void> {
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

/** Files of uploads that the process has open: folders are none. Linux only. */
export function openBlobs({ pid, dataDir }: ServerProcess): string[] {
  const blobs = path.join(dataDir, "blobs") + path.sep;
  const folder = `/proc/${pid}/fd`;
  const targets = readdirSync(folder).flatMap((name) => {
    try {
      return [readlinkSync(path.join(folder, name))];
    } catch {
      // Closed meanwhile.
      return [];
    }
  });
  return targets.filter(
    (target) => target.startsWith(blobs) && target.slice(blobs.length).includes(path.sep),
  );
}

/** Resident memory in bytes: now, and the most since `forgetPeakMemory`. Linux only. */
export async function memoryOf(pid: number): Promise<{ now: number; peak: number }> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  const kibibytes = (field: string): number =>
    Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1]);
  return { now: kibibytes("VmRSS") * 1024, peak: kibibytes("VmHWM") * 1024 };
}

export async function forgetPeakMemory(pid: number): Promise<void> {
  await writeFile(`/proc/${pid}/clear_refs`, "5");
}
