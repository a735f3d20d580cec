/** Clients that send nothing, send drops, or read nothing: each hinders itself alone. */
import { createHash } from "node:crypto";
import { connect as connectSocket } from "node:net";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { connect, facts } from "../support/mcp-clients.ts";
import {
  answerOrNone,
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
import { openDownload } from "../support/slow-reader.ts";
import { waitUntil } from "../support/wait-until.ts";

const running = useServer();

const reprDigest = (sample: Sample): string =>
  `sha-256=:${Buffer.from(sample.sha256, "hex").toString("base64")}:`;

/** A PATCH that has sent `sentBytes` of its body and sends no more. */
async function stalled(url: string, offset: number, sample: Sample, sentBytes: number) {
  const request = open("PATCH", url, patchHeaders(offset, sample.sizeBytes - offset), 60_000);
  await request.write(sample.bytes(offset, offset + sentBytes));
  return request;
}

/** How many uploads are being written, as the state store knows it. */
function writersNow(): number {
  const state = new DatabaseSync(path.join(running.server.dataDir, "state.sqlite"), {
    readOnly: true,
    timeout: 10_000,
  });
  try {
    return Number(
      state.prepare("SELECT count(*) AS active FROM upload WHERE lease_active = 1").get()?.active,
    );
  } finally {
    state.close();
  }
}

test("a PATCH takes an upload over from a writer that sends nothing within 5 s, with 423 and Retry-After until then", async () => {
  const sample = new Sample("taken over", 1_000_000);
  const url = await tusCreated(running.url, sample.sizeBytes);
  const writer = await stalled(url, 0, sample, 300_000);
  await waitUntil(() => writersNow() === 1);
  const since = performance.now();
  let offset = 0;
  let answer = await tusPatch(url, offset, sample.bytes());
  let refusals = 0;
  while (answer.status !== 204) {
    expect([409, 423]).toContain(answer.status);
    if (answer.status === 423) {
      expect(problem(answer)).toMatchObject({ code: "upload_locked", retryable: true });
      expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
      refusals += 1;
    }
    offset = offsetOf(answer);
    if (performance.now() - since > 20_000) throw new Error("never taken over");
    answer = await tusPatch(url, offset, sample.bytes(offset));
  }
  expect(refusals).toBeGreaterThan(0);
  expect(performance.now() - since).toBeLessThan(5000);
  // What the stalled writer had sent was not thrown away.
  expect(offset).toBe(300_000);
  expect(answer.headers["repr-digest"]).toBe(reprDigest(sample));
  const late = await answerOrNone(writer.answer);
  if (late !== null) expect(late.status).toBe(423);
});

test("HEAD ends a writer at once, tells how far it came, and the next PATCH from there is accepted", async () => {
  const sample = new Sample("asked", 2_000_000);
  const url = await tusCreated(running.url, sample.sizeBytes);
  const writer = await stalled(url, 0, sample, 700_000);
  await waitUntil(() => writersNow() === 1);
  const since = performance.now();
  const head = await tusHead(url);
  expect([head.status, performance.now() - since < 2000]).toEqual([200, true]);
  const offset = offsetOf(head);
  expect(offset).toBeLessThanOrEqual(700_000);
  const rest = await tusPatch(url, offset, sample.bytes(offset));
  expect([rest.status, rest.headers["repr-digest"]]).toEqual([204, reprDigest(sample)]);
  const ended = await answerOrNone(writer.answer);
  if (ended !== null) expect(ended.status).toBe(423);
});

test("a writer whose bytes come in drops keeps its upload from a PATCH, and upload_status does not disturb it", async () => {
  const sample = new Sample("drops", 40);
  const url = await tusCreated(running.url, sample.sizeBytes);
  const client = await connect("a client of 2026-07-28", running.server.mcpUrl);
  const handle = String((await tusHead(url)).headers["longshore-handle"]);
  const writer = open("PATCH", url, patchHeaders(0, sample.sizeBytes), 60_000);
  for (let at = 0; at < sample.sizeBytes; at += 1) {
    await writer.write(sample.bytes(at, at + 1));
    if (at % 10 === 5) {
      const refused = await tusPatch(url, 0, sample.bytes());
      expect([refused.status, problem(refused).code]).toEqual([423, "upload_locked"]);
      await facts(client, "upload_status", { handle });
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  writer.end();
  const answer = await writer.answer;
  expect([answer.status, answer.headers["repr-digest"]]).toEqual([204, reprDigest(sample)]);
});

test("a hundred stalled uploads and a hundred half-open requests do not hinder another upload", async () => {
  const sample = new Sample("stands still", 100_000);
  const urls = await Promise.all(
    Array.from({ length: 100 }, () => tusCreated(running.url, sample.sizeBytes)),
  );
  const writers = await Promise.all(urls.map((url) => stalled(url, 0, sample, 1000)));
  await waitUntil(() => writersNow() === urls.length);
  const halves = Array.from({ length: 100 }, () => {
    const socket = connectSocket(running.server.port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write("PATCH /files/x HTTP/1.1\r\nHost: 127.0.0.1\r\nTus-Resu");
    return socket;
  });
  const free = new Sample("flows", 32 << 20);
  const since = performance.now();
  const url = await tusCreated(running.url, free.sizeBytes);
  const sent = await tusPatch(url, 0, free.stream(), { "Content-Length": String(free.sizeBytes) });
  expect([sent.status, sent.headers["longshore-status"]]).toEqual([204, "complete"]);
  expect(performance.now() - since).toBeLessThan(15_000);
  expect((await tusHead(url)).headers["repr-digest"]).toBe(reprDigest(free));
  for (const { destroy } of writers) destroy();
  for (const socket of halves) socket.destroy();
  // What a stalled one had sent is kept.
  await waitUntil(async () => offsetOf(await tusHead(String(urls[7]))) === 1000);
});

test("readers that take nothing do not hinder others, and get the right bytes when they go on", async () => {
  const sample = new Sample("read slowly", 48 << 20);
  const whole = await tusCreate(
    running.url,
    sample.sizeBytes,
    { "Content-Length": String(sample.sizeBytes) },
    sample.stream(),
  );
  expect(whole.status).toBe(201);
  const client = await connect("a client of 2025-11-25", running.server.mcpUrl);
  const { url } = await facts(client, "file_download", { handle: whole.headers["longshore-handle"] });
  const slow = await Promise.all(Array.from({ length: 10 }, () => openDownload(String(url))));
  const since = performance.now();
  const quick = await http("GET", String(url));
  expect(createHash("sha256").update(quick.body).digest("hex")).toBe(sample.sha256);
  expect((await tusCreate(running.url, 5, {}, "hello")).status).toBe(201);
  expect(performance.now() - since).toBeLessThan(15_000);
  const [first, ...rest] = slow;
  expect(await first?.sha256()).toBe(sample.sha256);
  for (const reader of rest) reader.destroy();
  expect((await http("GET", `${running.url}/healthz`)).status).toBe(200);
});
