/** The built command line as a process of its own. `npm test` builds it first. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { waitUntil } from "./wait-until.ts";

const main = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

interface Exit {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Running {
  readonly pid: number;
  stdout(): string;
  stderr(): string;
  kill(signal: NodeJS.Signals): void;
  readonly exit: Promise<Exit>;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** The environment of this process, without settings that the developer has. */
export function cleanEnv(more: Readonly<Record<string, string>> = {}): Record<string, string | undefined> {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("LONGSHORE_"));
  return { ...Object.fromEntries(kept), ...more };
}

/** Starts `longshore ARGS`; it is killed when the test ends. */
export function start(args: readonly string[], options: RunOptions = {}): Running {
  return follow(
    spawn(process.execPath, [main, ...args], {
      env: cleanEnv(options.env),
      stdio: ["ignore", "pipe", "pipe"],
      ...(options.cwd !== undefined && { cwd: options.cwd }),
    }),
  );
}

export function follow(child: ChildProcessByStdio<null, Readable, Readable>): Running {
  let out = "";
  let err = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    err += text;
  });
  const exit = once(child, "close").then(([status, signal]) => ({ status, signal }) as Exit);
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exit;
  });
  return {
    pid: child.pid ?? -1,
    stdout: () => out,
    stderr: () => err,
    kill: (signal) => void child.kill(signal),
    exit,
  };
}

/** Runs `longshore ARGS` to its end. */
export async function run(
  args: readonly string[],
  options: RunOptions = {},
): Promise<{ status: number | null; stdout: string; stderr: string }> {
  const running = start(args, options);
  const { status } = await running.exit;
  return { status, stdout: running.stdout(), stderr: running.stderr() };
}

export interface BuiltServer extends Running {
  readonly mcpUrl: string;
  readonly tusUrl: string;
  readonly dataDir: string;
  /** Without a slash at the end. */
  readonly publicUrl: string;
  readonly port: number;
}

/** `longshore serve --json` on a free port, once it says where it is. */
export async function startBuiltServer(
  dataDir: string,
  args: readonly string[] = [],
  options: RunOptions = {},
): Promise<BuiltServer> {
  const common = ["--json", "--port", "0", "--data-dir", dataDir, "--min-free-bytes", "0"];
  const running = start(["serve", ...common, ...args], options);
  let ended: Exit | undefined;
  void running.exit.then((exit) => {
    ended = exit;
  });
  await waitUntil(() => running.stdout().includes("\n") || ended !== undefined);
  if (!running.stdout().includes("\n")) throw new Error(`The server did not start: ${running.stderr()}`);
  const told = JSON.parse(running.stdout()) as { mcpUrl: string; tusUrl: string; dataDir: string };
  const publicUrl = told.mcpUrl.replace(/\/mcp$/, "");
  return { ...running, ...told, publicUrl, port: Number(new URL(publicUrl).port) };
}
