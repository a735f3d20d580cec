/** A server that may open only a few files is asked for more than that. */
import { readdirSync } from "node:fs";
import { Agent } from "node:http";
import { expect, test } from "vitest";
import { connect, facts } from "../support/mcp-clients.ts";
import {
  answerOrNone,
  type HttpAnswer,
  http,
  offsetOf,
  open,
  patchHeaders,
  problem,
  tusCreate,
  tusCreated,
  tusHead,
  tusPatch,
} from "../support/plain-http.ts";
import { Sample } from "../support/sample.ts";
import { useServer } from "../support/server-process.ts";
import { waitUntil } from "../support/wait-until.ts";

const limit = 128;
/** Large enough for a file of its own, small enough for a refused body to be read to its end. */
const sample = new Sample("many at once", 100_000);

const running = useServer({ wrapper: ["bash", "-c", `ulimit -n ${limit}; exec "$@"`, "bash"] });

function expectUnavailable(answer: HttpAnswer): void {
  expect([answer.status, problem(answer).code]).toEqual([503, "storage_unavailable"]);
  expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
  expect(answer.body.toString()).not.toMatch(/EMFILE|too many/i);
}

/** Asks for the offset and sends the rest. */
async function isFinished(url: string): Promise<boolean> {
  const head = await answerOrNone(tusHead(url));
  if (head?.status !== 200) return false;
  const offset = offsetOf(head);
  if (offset === sample.sizeBytes) return head.headers["longshore-status"] === "complete";
  expect([0, 1]).toContain(offset);
  const rest = await answerOrNone(tusPatch(url, offset, sample.bytes(offset)));
  return rest?.status === 204 && rest.headers["longshore-status"] === "complete";
}

const openFilesOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

test("out of file descriptors it says that the storage is unavailable, and recovers when the others have gone", async () => {
  const stored = new Sample("stored before", 100_000);
  const whole = await tusCreate(running.url, stored.sizeBytes, {}, stored.bytes());
  const client = await connect("a client of 2026-07-28", running.server.mcpUrl);
  const { url: download } = await facts(client, "file_download", {
    handle: whole.headers["longshore-handle"],
  });
  const waiting = await tusCreated(running.url, sample.sizeBytes);
  const urls: string[] = [];
  for (let count = 0; count < limit; count += 1) urls.push(await tusCreated(running.url, sample.sizeBytes));

  // One connection that is there already: a new one cannot be had later.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const health = () => http("GET", `${running.url}/healthz`, { agent });
  expect((await health()).status).toBe(200);

  // Each takes a socket and, once its byte is there, a file.
  const writers = urls.map((url) => {
    const request = open("PATCH", url, patchHeaders(0, sample.sizeBytes), 60_000);
    request.write(sample.bytes(0, 1)).catch(() => {});
    return { url, request, answer: answerOrNone(request.answer) };
  });
  const told: HttpAnswer[] = [];
  for (const { answer } of writers) void answer.then((given) => given !== null && told.push(given));
  await waitUntil(() => openFilesOf(running.server.pid) >= limit - 1);
  expect(await answerOrNone(http("GET", `${running.url}/healthz`, { withinMs: 1000 }))).toBeNull();

  expect((await health()).status).toBe(200);
  expectUnavailable(await http("PATCH", waiting, { agent, headers: patchHeaders(0), body: sample.bytes() }));
  expectUnavailable(await http("GET", String(download), { agent }));
  const looked = await http("HEAD", waiting, { agent, headers: { "Tus-Resumable": "1.0.0" } });
  expect([200, 423]).toContain(looked.status);

  for (const { request } of writers) request.destroy();
  await Promise.all(writers.map(({ answer }) => answer));
  for (const answer of told) expectUnavailable(answer);
  // Connections that had to wait come one after the other, and it is told of each that its client has gone.
  await waitUntil(async () => {
    const back = await answerOrNone(http("GET", String(download)));
    return back?.status === 200 && back.body.equals(stored.bytes());
  });
  for (const url of [waiting, ...urls.slice(0, 20)]) await waitUntil(() => isFinished(url));
  agent.destroy();
  expect(running.server.log()).not.toContain("internal_error");
});
