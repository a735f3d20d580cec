/** The built server as a process of its own, which can be killed. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const command = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));

export interface ServerProcess {
  readonly pid: number;
  readonly mcpUrl: string;
  readonly port: number;
  /** SIGKILL: no handler runs, nothing is flushed. Resolves when the process is gone. */
  kill(): Promise<void>;
}

/** @param port 0 for any free one. */
export async function startServer(dataDir: string, port: number): Promise<ServerProcess> {
  // Settings of the person who runs the demo have no place in it, and a small disk must not stop it.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith("LONGSHORE_")),
  );
  const flags = [
    "--json",
    "--port",
    String(port),
    "--data-dir",
    dataDir,
    "--min-free-bytes",
    "0",
    "--log",
    "warn",
  ];
  const child = spawn(process.execPath, [command, "serve", ...flags], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const kill = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await exited;
  };
  try {
    const { mcpUrl, pid } = JSON.parse(await firstLine(child)) as { mcpUrl: string; pid: number };
    return { pid, mcpUrl, port: Number(new URL(mcpUrl).port), kill };
  } catch (error) {
    await kill();
    throw error;
  }
}

async function firstLine(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error("The server has no output to read.");
  for await (const line of createInterface({ input: child.stdout })) return line;
  throw new Error("The server ended before it said where it is.");
}
