/** Client for small requests, in a process of its own. Reads a `RequestPlan` from stdin and writes a `RequestResult` to stdout. */
import { text } from "node:stream/consumers";
import { RawConnection } from "./raw-connection.ts";
import type { RequestPlan, RequestResult } from "./request-plan.ts";

const maxLocations = 32;

const plan = JSON.parse(await text(process.stdin)) as RequestPlan;
const connections = await Promise.all(
  Array.from({ length: plan.connections }, () => RawConnection.open(plan.port)),
);

let next = 0;
let done = 0;
let bodyBytes = 0;
const locations: string[] = [];
const keepEach = Math.max(1, Math.floor(plan.turns / maxLocations));
const isNumbered = plan.requests.some((request) => request.includes("{n}"));

async function ask(connection: RawConnection, request: string, expected: number): Promise<string> {
  const { status, head, bodyBytes: bytes } = await connection.send(request);
  if (status !== expected)
    throw new Error(`${request.slice(0, request.indexOf("\r\n"))} was answered ${status}, not ${expected}`);
  bodyBytes += bytes;
  return head;
}

function pathOf(head: string): string {
  const location = /\r\nlocation: *(\S+)/i.exec(head)?.[1];
  if (location === undefined) throw new Error("an answer without Location");
  return new URL(location, "http://127.0.0.1").pathname;
}

async function turn(connection: RawConnection, n: number): Promise<void> {
  const request = plan.requests[n % plan.requests.length] ?? "";
  const head = await ask(connection, isNumbered ? request.replace("{n}", String(n)) : request, plan.expect);
  const keep = n % keepEach === 0 && locations.length < maxLocations && /\r\nlocation:/i.test(head);
  if (plan.followUp === null && !keep) return;
  const path = pathOf(head);
  if (keep) locations.push(path);
  if (plan.followUp !== null)
    await ask(connection, plan.followUp.replace("{location}", path), plan.expectFollowUp);
}

const startedAt = performance.now();
const cpu = process.cpuUsage();
await Promise.all(
  connections.map(async (connection) => {
    while (next < plan.turns && performance.now() - startedAt < plan.durationMs) {
      const n = next;
      next += 1;
      await turn(connection, n);
      done += 1;
    }
  }),
);
const seconds = (performance.now() - startedAt) / 1000;
const { user, system } = process.cpuUsage(cpu);
for (const connection of connections) connection.close();

const result: RequestResult = {
  seconds,
  cpuSeconds: (user + system) / 1e6,
  turns: done,
  bodyBytes,
  locations,
};
process.stdout.write(JSON.stringify(result));
