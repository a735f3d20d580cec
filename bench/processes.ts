/** Starting a server on a free port of this machine, waiting until it takes connections, and ending it. */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ServerKind } from "./servers.ts";
import { cpuSeconds, familyOf, residentBytes } from "./usage.ts";
import { adopt, makeFolder, removeFolder } from "./workspace.ts";

const startMs = 30_000;
const stopMs = 10_000;

export interface RunningServer {
  readonly kind: ServerKind;
  readonly port: number;
  readonly dir: string;
  /** The process and its workers. */
  readonly pids: readonly number[];
  /** Memory once it was up and had come to rest. */
  readonly idleBytes: number;
  stop(): Promise<void>;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function takesConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1" });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

/** The environment without settings that someone has made for a server of their own. */
function plainEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("LONGSHORE_")));
}

/** Waits until the processes use next to no CPU any more, but not for long. */
export async function settle(pids: readonly number[], maxMs = 5_000): Promise<void> {
  const deadline = performance.now() + maxMs;
  let before = cpuSeconds(pids);
  do {
    await sleep(100);
    const now = cpuSeconds(pids);
    if (now - before <= 0.01) return;
    before = now;
  } while (performance.now() < deadline);
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), stopMs);
  await gone;
  clearTimeout(late);
}

/**
 * @param root where its folder is made.
 * @param given a folder that is there, and whether it stays; else the folder goes with the server.
 * @returns null where this kind cannot run here.
 */
export async function startServer(
  kind: ServerKind,
  root: string,
  given: { readonly dir: string; readonly keep: boolean } | null = null,
): Promise<RunningServer | null> {
  const dir = given?.dir ?? makeFolder(root);
  const port = await freePort();
  const launch = kind.launch(port, dir);
  if (launch === null) {
    removeFolder(dir);
    return null;
  }
  const errors = join(dir, "stderr.txt");
  const stderr = openSync(errors, "w");
  const child = spawn(launch.command, launch.args, {
    cwd: dir,
    env: { ...plainEnvironment(), ...launch.env },
    stdio: ["ignore", "ignore", stderr],
  });
  closeSync(stderr);
  adopt(child);
  const deadline = performance.now() + startMs;
  while (!(await takesConnections(port))) {
    if (child.exitCode !== null || performance.now() > deadline)
      throw new Error(`${kind.label} did not start: ${readFileSync(errors, "utf8").slice(0, 2_000)}`);
    await sleep(20);
  }
  const pids = familyOf(child.pid ?? 0);
  await settle(pids);
  return {
    kind,
    port,
    dir,
    pids,
    idleBytes: residentBytes(pids),
    async stop() {
      await end(child);
      if (given?.keep !== true) removeFolder(dir);
    },
  };
}
