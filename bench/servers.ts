/** The servers that are compared: how each is started, which door it has for uploads, and where it keeps what it gets. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { findNginx, writeNginxConfig } from "./nginx.ts";

export const serverIds = ["a", "b", "c", "d", "e", "f", "g", "h", "m"] as const;
export type ServerId = (typeof serverIds)[number];

export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface ServerKind {
  readonly id: ServerId;
  readonly label: string;
  /** How bytes get in: tus (POST, then PATCH), a plain PUT, or not at all. */
  readonly door: "tus" | "put" | "none";
  /** Below the server's folder; null where it keeps nothing. */
  readonly storedIn: string | null;
  /** Null where it cannot run on this machine. */
  readonly launch: (port: number, dir: string) => Launch | null;
}

const fromRoot = (path: string): string => join(import.meta.dirname, "..", path);

const longshore =
  (env: Readonly<Record<string, string>>) =>
  (port: number, dir: string): Launch => ({
    command: process.execPath,
    args: [fromRoot("dist/cli/main.js"), "serve", "--port", String(port), "--data-dir", join(dir, "data")],
    env,
  });

const peer =
  (name: string) =>
  (port: number, dir: string): Launch => {
    const files = join(dir, "files");
    mkdirSync(files, { recursive: true });
    return {
      command: process.execPath,
      args: [fromRoot(`bench/peers/${name}.ts`), String(port), files],
      env: {},
    };
  };

function nginx(port: number, dir: string): Launch | null {
  const command = findNginx();
  if (command === null) return null;
  mkdirSync(join(dir, "files"), { recursive: true });
  return { command, args: ["-p", dir, "-e", "stderr", "-c", writeNginxConfig(port, dir)], env: {} };
}

export const serverKinds: Readonly<Record<ServerId, ServerKind>> = {
  a: { id: "a", label: "Longshore", door: "tus", storedIn: "data/blobs", launch: longshore({}) },
  b: {
    id: "b",
    label: "Longshore without fsync",
    door: "tus",
    storedIn: "data/blobs",
    launch: longshore({ LONGSHORE_FSYNC: "never" }),
  },
  c: { id: "c", label: "@tus/server in Hono", door: "tus", storedIn: "files", launch: peer("tus-hono") },
  d: { id: "d", label: "@tus/server on node:http", door: "tus", storedIn: "files", launch: peer("tus-node") },
  e: { id: "e", label: "Node, pipe to a file", door: "put", storedIn: "files", launch: peer("pipe-to-file") },
  f: { id: "f", label: "Node, null sink", door: "put", storedIn: null, launch: peer("null-sink") },
  g: { id: "g", label: "nginx", door: "put", storedIn: "files", launch: nginx },
  h: { id: "h", label: "Node, file stream", door: "none", storedIn: "files", launch: peer("file-stream") },
  m: { id: "m", label: "MCP SDK, echo tool", door: "none", storedIn: null, launch: peer("mcp-echo") },
};
