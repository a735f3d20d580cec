/** `longshore stdio` as a desktop host starts it: the built command behind pipes, with the client of either SDK. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { Client as ClientV2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as StdioV2 } from "@modelcontextprotocol/client/stdio";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as StdioV1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { onTestFinished } from "vitest";
import { cleanEnv } from "./built-server.ts";
import { binary } from "./server-process.ts";

export type Facts = Record<string, unknown>;

/** Options that every such server has in tests. */
function stdioArguments(dataDir: string, flags: readonly string[] = []): string[] {
  return [binary, "stdio", "--data-dir", dataDir, "--min-free-bytes", "0", "--log", "debug", ...flags];
}

export interface StdioHost {
  readonly client: ClientV1 | ClientV2;
  call(name: string, args?: Facts): Promise<Facts>;
  close(): Promise<void>;
}

export async function startHost(
  generation: "v1" | "v2",
  dataDir: string,
  flags: readonly string[] = [],
): Promise<StdioHost> {
  const parameters = {
    command: process.execPath,
    args: stdioArguments(dataDir, flags),
    env: cleanEnv() as Record<string, string>,
    stderr: "ignore" as const,
  };
  const client =
    generation === "v1"
      ? new ClientV1({ name: "host", version: "1" })
      : new ClientV2({ name: "host", version: "1" }, { versionNegotiation: { mode: "auto" } });
  if (client instanceof ClientV1) await client.connect(new StdioV1(parameters));
  else await client.connect(new StdioV2(parameters));
  onTestFinished(() => client.close());
  return {
    client,
    close: () => client.close(),
    async call(name, args = {}) {
      const { structuredContent } = await client.callTool({ name, arguments: args });
      return (structuredContent ?? {}) as Facts;
    },
  };
}

export interface BareHost {
  readonly child: ChildProcessWithoutNullStreams;
  stdout(): string;
  stderr(): string;
  /** Exit status, once it has ended. */
  readonly exit: Promise<number | null>;
  send(message: object | string): void;
}

/** Without a client: what really goes over the pipes. */
export function startBareHost(dataDir: string): BareHost {
  const child = spawn(process.execPath, stdioArguments(dataDir), { env: cleanEnv() });
  let out = "";
  let err = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    err += text;
  });
  child.stdin.on("error", () => {});
  const exit = once(child, "close").then(([status]) => status as number | null);
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exit;
  });
  return {
    child,
    stdout: () => out,
    stderr: () => err,
    exit,
    send: (message) =>
      void child.stdin.write(`${typeof message === "string" ? message : JSON.stringify(message)}\n`),
  };
}
