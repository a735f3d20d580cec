/** The clients, each in a process of its own, and how they are told what to do. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { RequestPlan, RequestResult } from "./client/request-plan.ts";
import { adopt } from "./workspace.ts";

export type BodySource =
  | { readonly kind: "file"; readonly path: string; readonly offset: number; readonly bytes: number }
  /** Chunked, with one byte in each chunk. */
  | { readonly kind: "single-bytes"; readonly bytes: number };

export interface BodyRequest {
  readonly head: string;
  readonly send: BodySource | null;
}

export interface BodyResult {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly answers: readonly (readonly {
    readonly status: number;
    readonly head: string;
    readonly bodyBytes: number;
  }[])[];
}

/** Its standard library is all that is needed; the system's own starts without a detour through version managers. */
const python = existsSync("/usr/bin/python3") ? "/usr/bin/python3" : "python3";

const bodiesScript = fileURLToPath(new URL("./client/bodies.py", import.meta.url));
const requestsScript = fileURLToPath(new URL("./client/requests.ts", import.meta.url));

/** Runs a program to its end, with a job on its stdin and a result on its stdout, both JSON. */
export async function runProgram(command: string, args: readonly string[], job: unknown): Promise<unknown> {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"] });
  adopt(child);
  child.stdin.end(JSON.stringify(job));
  const exit = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const [output, errors, status] = await Promise.all([text(child.stdout), text(child.stderr), exit]);
  if (status !== 0) throw new Error(`${args[0]} failed: ${errors.trim().slice(0, 2_000)}`);
  return JSON.parse(output);
}

/** One list of requests for each connection; all connections start together. */
export async function sendBodies(
  port: number,
  connections: readonly (readonly BodyRequest[])[],
): Promise<BodyResult> {
  return (await runProgram(python, [bodiesScript], { port, connections })) as BodyResult;
}

export async function sendRequests(plan: RequestPlan): Promise<RequestResult> {
  return (await runProgram(process.execPath, [requestsScript], plan)) as RequestResult;
}
