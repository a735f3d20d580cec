/** Another process holds the state store locked: nothing is written meanwhile, nothing is lost, and nothing else waits. */
import { createHash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { connect, facts, failure } from "../support/mcp-clients.ts";
import {
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
import { lockStore } from "../support/store-lock.ts";
import { waitUntil } from "../support/wait-until.ts";

const running = useServer();

function expectUnavailable(answer: HttpAnswer): void {
  expect(answer.status).toBe(503);
  expect(problem(answer)).toMatchObject({ code: "storage_unavailable", retryable: true });
  expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
}

function expectTrueHead(answer: HttpAnswer, offset: number): void {
  expect([200, 423]).toContain(answer.status);
  if (answer.status === 423) expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
  else expect(offsetOf(answer)).toBe(offset);
}

test("while the store is locked writing and /readyz answer 503 with Retry-After, HEAD 200 or 423, and reading goes on; afterwards the same requests succeed", async () => {
  const sample = new Sample("locked", 300_000);
  const url = await tusCreated(running.url, sample.sizeBytes);
  await tusPatch(url, 0, sample.bytes(0, 100_000));
  const stored = new Sample("stored before", 2_000_000);
  const whole = await tusCreate(running.url, stored.sizeBytes, {}, stored.bytes());
  const client = await connect("a client of 2026-07-28", running.server.mcpUrl);
  const { url: download } = await facts(client, "file_download", {
    handle: whole.headers["longshore-handle"],
  });

  const [toPut, toDelete] = [await tusCreated(running.url, 5), await tusCreated(running.url, 5)];

  const lock = await lockStore(running.server.dataDir);
  let held = true;
  const meanwhile = watchResponsiveness(() => held, String(download), stored.sha256);
  onTestFinished(async () => {
    held = false;
    await meanwhile.catch(() => {});
  });
  meanwhile.catch(() => {});
  const answers = await Promise.all([
    tusCreate(running.url, 5),
    tusCreate(running.url, 5, {}, "hello"),
    tusPatch(url, 100_000, sample.bytes(100_000)),
    http("PUT", toPut, { body: "hello" }),
    http("DELETE", toDelete, { headers: { "Tus-Resumable": "1.0.0" } }),
  ]);
  for (const answer of answers) expectUnavailable(answer);
  for (let count = 0; count < 5; count += 1) expectTrueHead(await tusHead(url), 100_000);
  expect(await failure(client, "upload_create", { filename: "a.bin", size: 5 })).toMatchObject({
    code: "storage_unavailable",
    retryable: true,
    retryAfterSeconds: expect.any(Number),
  });
  const ready = await http("GET", `${running.url}/readyz`);
  expectUnavailable(ready);
  const listed = await client.call("file_list");
  if (listed.isError) expect(listed.facts.error.code).toBe("storage_unavailable");
  held = false;
  const watched = await meanwhile;
  await lock.release();

  expect(watched.answers).toBeGreaterThanOrEqual(10);
  expect(watched.slowestMs).toBeLessThan(1500);
  expect((await http("GET", `${running.url}/readyz`)).status).toBe(200);
  expect((await tusCreate(running.url, 5)).status).toBe(201);
  expect((await http("PUT", toPut, { body: "hello" })).status).toBe(200);
  expect((await http("DELETE", toDelete, { headers: { "Tus-Resumable": "1.0.0" } })).status).toBe(204);
  const head = await tusHead(url);
  expectTrueHead(head, 100_000);
  const patched = await tusPatch(url, 100_000, sample.bytes(100_000));
  expect([patched.status, patched.headers["longshore-status"]]).toEqual([204, "complete"]);
  expect((await facts(client, "upload_create", { filename: "a.bin", size: 5 })).status).toBe("receiving");
});

/** Asks for health and a download over and over: each must be answered right, and soon. */
async function watchResponsiveness(
  goOn: () => boolean,
  download: string,
  sha256: string,
): Promise<{ answers: number; slowestMs: number }> {
  let answers = 0;
  let slowestMs = 0;
  while (goOn()) {
    const since = performance.now();
    const [health, file] = await Promise.all([http("GET", `${running.url}/healthz`), http("GET", download)]);
    expect([health.status, file.status]).toEqual([200, 200]);
    expect(createHash("sha256").update(file.body).digest("hex")).toBe(sha256);
    slowestMs = Math.max(slowestMs, performance.now() - since);
    answers += 1;
  }
  return { answers, slowestMs };
}

test("a lock that is gone after a moment is waited for: nobody hears of it", async () => {
  const url = await tusCreated(running.url, 10);
  const lock = await lockStore(running.server.dataDir);
  const patched = tusPatch(url, 0, "0123456789");
  const created = tusCreate(running.url, 5, {}, "hello");
  await wait(700);
  await lock.release();
  expect((await patched).status).toBe(204);
  expect((await created).status).toBe(201);
});

test("a PATCH that runs while the store becomes locked loses nothing that was acknowledged, and goes on afterwards", async () => {
  const sample = new Sample("locked midway", 8_000_000);
  const url = await tusCreated(running.url, sample.sizeBytes);
  await tusPatch(url, 0, sample.bytes(0, 1_000_000));
  const request = open("PATCH", url, patchHeaders(1_000_000, sample.sizeBytes - 1_000_000));
  await request.write(sample.bytes(1_000_000, 5_000_000));
  const lock = await lockStore(running.server.dataDir);
  await request.write(sample.bytes(5_000_000));
  request.end();
  expectUnavailable(await request.answer);
  await lock.release();
  // The answer told nothing of the offset; HEAD tells the truth.
  let head = await tusHead(url);
  await waitUntil(async () => {
    head = await tusHead(url);
    return head.status === 200;
  });
  const offset = offsetOf(head);
  expect(offset).toBeGreaterThanOrEqual(1_000_000);
  const client = await connect("a client of 2026-07-28", running.server.mcpUrl);
  const handle = String(head.headers["longshore-handle"]);
  const { prefix } = await facts(client, "upload_status", { handle, prefixDigest: true });
  expect(prefix).toMatchObject({ bytes: offset, sha256: sample.prefixSha256(offset) });
  const rest = await tusPatch(url, offset, sample.bytes(offset));
  expect([rest.status, rest.headers["longshore-status"]]).toEqual([204, "complete"]);
  expect(rest.headers["repr-digest"]).toBe(
    `sha-256=:${Buffer.from(sample.sha256, "hex").toString("base64")}:`,
  );
});

test("a HEAD while a PATCH runs and the store is locked answers 423, and once more the truth after", async () => {
  const sample = new Sample("locked and asked", 3_000_000);
  const url = await tusCreated(running.url, sample.sizeBytes);
  const request = open("PATCH", url, patchHeaders(0, sample.sizeBytes), 60_000);
  await request.write(sample.bytes(0, 2_000_000));
  const lock = await lockStore(running.server.dataDir);
  const head = await tusHead(url);
  expect([200, 423]).toContain(head.status);
  await lock.release();
  let after = head;
  await waitUntil(async () => {
    after = await tusHead(url);
    return after.status === 200;
  });
  request.destroy();
  const offset = offsetOf(after);
  if (head.status === 200) expect(offset).toBeGreaterThanOrEqual(offsetOf(head));
  const rest = await tusPatch(url, offset, sample.bytes(offset));
  expect([rest.status, rest.headers["longshore-status"]]).toEqual([204, "complete"]);
});

test("a server that starts while the store is locked says why it cannot, or comes up once it is free", async () => {
  const lock = await lockStore(running.server.dataDir);
  await running.server.kill();
  const starting = running.start();
  await wait(1000);
  await lock.release();
  expect((await starting).isRunning()).toBe(true);
  expect((await http("GET", `${running.url}/healthz`)).status).toBe(200);
});
