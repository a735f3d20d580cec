/** The servers that are compared: how each is started, which door it has for uploads, and where it keeps what it gets. */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findNginx, writeNginxConfig } from "./nginx.ts";

export const serverIds = ["a", "b", "c", "d", "e", "f", "g", "h", "m", "t"] as const;
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
  /** Its database, where small files are kept in that; null with the others. */
  readonly recordsIn: string | null;
  /** Its digests are true ones, so that they can be checked. */
  readonly tellsDigest: boolean;
  /** Null where it cannot run on this machine. */
  readonly launch: (port: number, dir: string) => Launch | null;
}

const fromRoot = (path: string): string => join(import.meta.dirname, "..", path);

const longshore =
  (nodeArgs: readonly string[], env: Readonly<Record<string, string>>) =>
  (port: number, dir: string): Launch => ({
    command: process.execPath,
    args: [
      ...nodeArgs,
      fromRoot("dist/cli/main.js"),
      "serve",
      "--port",
      String(port),
      "--data-dir",
      join(dir, "data"),
    ],
    env,
  });

/** The stand-in is told by the file it stands in for; where that has moved, the figures would be those of (a). */
const withoutDigest = (port: number, dir: string): Launch => {
  if (!existsSync(fromRoot("dist/integrity/digest-follower.js")))
    throw new Error(
      "dist/integrity/digest-follower.js is not there: bench/peers/without-digest.ts needs its new name",
    );
  return longshore(["--import", fileURLToPath(new URL("./peers/without-digest.ts", import.meta.url))], {
    LONGSHORE_FSYNC: "never",
  })(port, dir);
};

const peer =
  (script: URL) =>
  (port: number, dir: string): Launch => {
    const files = join(dir, "files");
    mkdirSync(files, { recursive: true });
    return {
      command: process.execPath,
      args: [fileURLToPath(script), String(port), files],
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
  a: {
    id: "a",
    tellsDigest: true,
    label: "Longshore",
    door: "tus",
    storedIn: "data/blobs",
    recordsIn: "data/state.sqlite",
    launch: longshore([], {}),
  },
  b: {
    id: "b",
    tellsDigest: false,
    label: "Longshore, no fsync or digest",
    door: "tus",
    storedIn: "data/blobs",
    recordsIn: "data/state.sqlite",
    launch: withoutDigest,
  },
  c: {
    id: "c",
    tellsDigest: false,
    label: "@tus/server in Hono",
    door: "tus",
    storedIn: "files",
    recordsIn: null,
    launch: peer(new URL("./peers/tus-hono.ts", import.meta.url)),
  },
  d: {
    id: "d",
    tellsDigest: false,
    label: "@tus/server on node:http",
    door: "tus",
    storedIn: "files",
    recordsIn: null,
    launch: peer(new URL("./peers/tus-node.ts", import.meta.url)),
  },
  e: {
    id: "e",
    tellsDigest: false,
    label: "Node, pipe to a file",
    door: "put",
    storedIn: "files",
    recordsIn: null,
    launch: peer(new URL("./peers/pipe-to-file.ts", import.meta.url)),
  },
  f: {
    id: "f",
    tellsDigest: false,
    label: "Node, null sink",
    door: "put",
    storedIn: null,
    recordsIn: null,
    launch: peer(new URL("./peers/null-sink.ts", import.meta.url)),
  },
  g: {
    id: "g",
    tellsDigest: false,
    label: "nginx",
    door: "put",
    storedIn: "files",
    recordsIn: null,
    launch: nginx,
  },
  h: {
    id: "h",
    tellsDigest: false,
    label: "Node, file stream",
    door: "none",
    storedIn: "files",
    recordsIn: null,
    launch: peer(new URL("./peers/file-stream.ts", import.meta.url)),
  },
  m: {
    id: "m",
    tellsDigest: false,
    label: "MCP SDK, echo tool",
    door: "none",
    storedIn: null,
    recordsIn: null,
    launch: peer(new URL("./peers/mcp-echo.ts", import.meta.url)),
  },
  t: {
    id: "t",
    tellsDigest: false,
    label: "Longshore, task engine",
    door: "none",
    storedIn: null,
    recordsIn: null,
    launch: peer(new URL("./tasks/task-host.ts", import.meta.url)),
  },
};
