/** Several built servers on one data folder that know nothing of each other. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect, facts, failure } from "../support/mcp-clients.ts";
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
import { type Seeded, seeded } from "../support/seeded.ts";
import { openBlobs, type ServerProcess, startServer, useFolder } from "../support/server-process.ts";
import { waitUntil } from "../support/wait-until.ts";

const folder = useFolder();
let left: ServerProcess;
let right: ServerProcess;

beforeAll(async () => {
  const dataDir = path.join(folder.path, "shared");
  [left, right] = await Promise.all([startServer({ dataDir }), startServer({ dataDir })]);
});

afterAll(async () => {
  for (const server of [left, right]) expect(await server.stop()).toBe(0);
});

const hex = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** The same upload as another server knows it. */
const at = (server: ServerProcess, url: string): string => `${server.url}${new URL(url).pathname}`;

interface Acknowledged {
  readonly start: number;
  readonly end: number;
  readonly sample: Sample;
  readonly side: "left" | "right";
}

/** The bytes that are stored in the end, and the digest told with them. */
async function storedFile(server: ServerProcess, handle: string): Promise<Buffer> {
  const client = await connect("a client of 2026-07-28", server.mcpUrl);
  const status = await facts(client, "upload_status", { handle, waitMs: 20_000 });
  expect(status.status).toBe("complete");
  const { url } = await facts(client, "file_download", { handle });
  const download = await http("GET", String(url));
  expect([download.status, hex(download.body)]).toEqual([200, status.sha256]);
  return download.body;
}

/** Whoever was told that a range is stored finds it in the file as it was sent; no range belongs to two; every byte is somebody's. */
function expectHonest(stored: Buffer, acknowledged: readonly Acknowledged[]): void {
  const ranges = [...acknowledged].sort((a, b) => a.start - b.start);
  let reached = 0;
  for (const { start, end, sample } of ranges) {
    expect(start, "no two answers for one byte").toBe(reached);
    expect(stored.subarray(start, end).equals(sample.bytes(start, end)), `${start}-${end}`).toBe(true);
    reached = end;
  }
  expect(reached).toBe(stored.byteLength);
}

const losing = new Set([409, 413, 423]);
let refusals = 0;

/** Sends its own bytes wherever the offset is, until the upload is full; keeps what it was told is stored. */
async function contend(
  url: string,
  side: Acknowledged["side"],
  sample: Sample,
  chunkBytes: number,
  acknowledged: Acknowledged[],
): Promise<void> {
  for (let offset = 0; offset < sample.sizeBytes; ) {
    const end = Math.min(sample.sizeBytes, offset + chunkBytes);
    const answer = await tusPatch(url, offset, sample.bytes(offset, end));
    if (answer.status === 204) {
      expect(offsetOf(answer)).toBe(end);
      acknowledged.push({ start: offset, end, sample, side });
      offset = end;
      continue;
    }
    expect(losing, `${answer.status} ${answer.body}`).toContain(answer.status);
    refusals += 1;
    if (answer.status === 423) expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
    const told = offsetOf(answer);
    if (problem(answer).code === "offset_mismatch") {
      expect(told, "the true offset is another than the one refused").not.toBe(offset);
      offset = told;
    } else if (answer.status === 423 || told >= sample.sizeBytes) {
      // Locked: by the one who is ahead. Asked without a HEAD, which would end that one.
      offset = Math.max(offset, told);
    }
  }
}

/** Resolves with what each side has won. */
async function race(random: Seeded, name: string): Promise<readonly Acknowledged[]> {
  const sizeBytes = random.between(2, 400_000);
  const answer = await tusCreate(random.pick([left, right]).url, sizeBytes);
  const url = String(answer.headers.location);
  const acknowledged: Acknowledged[] = [];
  const chunk = (): number =>
    random.pick([sizeBytes, random.between(1, sizeBytes), Math.ceil(sizeBytes / 5)]);
  await Promise.all([
    contend(at(left, url), "left", new Sample(`${name} left`, sizeBytes), chunk(), acknowledged),
    contend(at(right, url), "right", new Sample(`${name} right`, sizeBytes), chunk(), acknowledged),
  ]);
  expectHonest(
    await storedFile(random.pick([left, right]), String(answer.headers["longshore-handle"])),
    acknowledged,
  );
  return acknowledged;
}

test("38 races of two clients at two servers for one upload: every byte acknowledged is stored as its sender sent it", async () => {
  const random = seeded();
  const won: Acknowledged[] = [];
  for (let count = 0; count < 38; count += 2) {
    won.push(...(await race(random, `race ${count}`)), ...(await race(random, `race ${count + 1}`)));
  }
  // They were races: both sides have been refused, and both have won.
  expect(refusals).toBeGreaterThan(38);
  expect(new Set(won.map(({ side }) => side)).size).toBe(2);
}, 120_000);

function isBeingWritten(handle: string): boolean {
  const state = new DatabaseSync(path.join(left.dataDir, "state.sqlite"), { readOnly: true, timeout: 5_000 });
  try {
    const row = state.prepare("SELECT lease_active FROM upload WHERE handle = ?").get(handle);
    return row?.lease_active === 1;
  } finally {
    state.close();
  }
}

test("while bytes flow at one server DELETE, PUT, PATCH and upload_write at the other answer 423, and nothing of the writer is lost", async () => {
  const sample = new Sample("flowing", 200_000);
  const created = await tusCreate(left.url, sample.sizeBytes);
  const url = String(created.headers.location);
  const handle = String(created.headers["longshore-handle"]);
  const client = await connect("a client of 2026-07-28", right.mcpUrl);
  const request = open("PATCH", url, patchHeaders(0, sample.sizeBytes));
  let sent = 0;
  const drip = setInterval(() => {
    if (sent === 150_000) return;
    void request.write(sample.bytes(sent, sent + 250)).catch(() => {});
    sent += 250;
  }, 20);
  try {
    await waitUntil(() => isBeingWritten(handle));
    const answers = [
      await http("DELETE", at(right, url), { headers: { "Tus-Resumable": "1.0.0" } }),
      await http("PUT", at(right, url), { body: sample.bytes() }),
      await tusPatch(at(right, url), 0, sample.bytes()),
    ];
    for (const answer of answers) {
      expect([answer.status, problem(answer).code]).toEqual([423, "upload_locked"]);
      expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
    }
    const chunk = { handle, offset: 0, data: sample.bytes(0, 100).toString("base64") };
    expect(await failure(client, "upload_write", chunk)).toMatchObject({
      code: "upload_locked",
      retryable: true,
      retryAfterSeconds: expect.any(Number),
    });
  } finally {
    clearInterval(drip);
  }
  await request.write(sample.bytes(sent));
  request.end();
  expect((await request.answer).status).toBe(204);
  expect(hex(await storedFile(right, handle))).toBe(sample.sha256);
});

test("when both send the whole file at once, exactly one gets 204 and the file is that one's", async () => {
  for (let count = 0; count < 10; count += 1) {
    const sizeBytes = 50_000;
    const url = await tusCreated(left.url, sizeBytes);
    const samples = [
      new Sample(`whole ${count} a`, sizeBytes),
      new Sample(`whole ${count} b`, sizeBytes),
    ] as const;
    const [a, b] = await Promise.all([
      tusPatch(at(left, url), 0, samples[0].bytes()),
      tusPatch(at(right, url), 0, samples[1].bytes()),
    ]);
    expect([a.status, b.status].filter((status) => status === 204)).toHaveLength(1);
    expect(losing).toContain(Math.max(a.status, b.status));
    const winner = a.status === 204 ? samples[0] : samples[1];
    const head = await tusHead(url);
    expect(head.headers["repr-digest"]).toBe(
      `sha-256=:${Buffer.from(winner.sha256, "hex").toString("base64")}:`,
    );
  }
});

/** An upload that the left server is in the middle of writing. */
interface Midway {
  readonly url: string;
  readonly handle: string;
  readonly mine: Sample;
  readonly theirs: Sample;
  readonly answer: Promise<HttpAnswer | null>;
  readonly request: ReturnType<typeof open>;
  readonly sentBytes: number;
}

async function startMidway(name: string, random: Seeded): Promise<Midway> {
  const sizeBytes = random.between(3_000_000, 6_000_000);
  const created = await tusCreate(left.url, sizeBytes);
  const url = String(created.headers.location);
  const mine = new Sample(`${name} mine`, sizeBytes);
  const request = open("PATCH", at(left, url), patchHeaders(0, sizeBytes), 60_000);
  const sentBytes = random.between(1_500_000, sizeBytes - 1);
  await request.write(mine.bytes(0, sentBytes));
  const answer = answerOrNone(request.answer);
  const theirs = new Sample(`${name} theirs`, sizeBytes);
  return {
    url,
    handle: String(created.headers["longshore-handle"]),
    mine,
    theirs,
    answer,
    request,
    sentBytes,
  };
}

/** As a client does: asks for the offset, goes on from there with its own bytes, and asks again where that is refused. */
async function takeOver({ url, theirs }: Midway): Promise<Acknowledged> {
  const target = at(right, url);
  const since = performance.now();
  for (;;) {
    const head = await http("HEAD", target, { headers: { "Tus-Resumable": "1.0.0" }, withinMs: 15_000 });
    expect([200, 423], String(head.status)).toContain(head.status);
    if (head.status === 200) {
      const start = offsetOf(head);
      const answer = await tusPatch(target, start, theirs.bytes(start));
      if (answer.status === 204) return { start, end: theirs.sizeBytes, sample: theirs, side: "right" };
      expect(losing).toContain(answer.status);
    }
    if (performance.now() - since > 20_000) throw new Error("the upload was not taken over in time");
  }
}

test("12 races in which one server is stopped while it writes and goes on after the other took over", async () => {
  const random = seeded();
  for (let round = 0; round < 3; round += 1) {
    const uploads = await Promise.all(
      [0, 1, 2, 3].map((count) => startMidway(`stopped ${round} ${count}`, random)),
    );
    // Some of their bytes are on the way to disk.
    await waitUntil(() => openBlobs(left).length >= uploads.length);
    await stopBetweenCommits(left);
    let taken: Acknowledged[];
    try {
      // The stopped one gets the rest of the bytes into its sockets: it will find them when it goes on.
      for (const { request, mine, sentBytes } of uploads)
        request.write(mine.bytes(sentBytes)).catch(() => {});
      taken = await Promise.all(uploads.map(takeOver));
    } finally {
      left.signal("SIGCONT");
    }
    for (const [index, upload] of uploads.entries()) {
      upload.request.end();
      const late = await upload.answer;
      // Whatever the one that was stopped says, it may not say that its bytes are stored.
      if (late !== null) expect([404, 409, 410, 423]).toContain(late.status);
      const theirs = taken[index];
      if (theirs === undefined) throw new Error("nobody took over");
      const stored = await storedFile(right, upload.handle);
      expect(stored.subarray(theirs.start).equals(upload.theirs.bytes(theirs.start))).toBe(true);
      // What was committed before the stop is the first one's, byte for byte.
      expect(stored.subarray(0, theirs.start).equals(upload.mine.bytes(0, theirs.start))).toBe(true);
      expect(hex(await storedFile(left, upload.handle))).toBe(hex(stored));
    }
  }
}, 120_000);

/** SIGSTOP. A process that is stopped within a commit keeps the state store locked for all, which is another test's matter. */
async function stopBetweenCommits(server: ServerProcess): Promise<void> {
  const state = new DatabaseSync(path.join(server.dataDir, "state.sqlite"), { timeout: 0 });
  try {
    for (let attempt = 0; attempt < 100; attempt += 1) {
      server.signal("SIGSTOP");
      try {
        state.exec("BEGIN IMMEDIATE");
        state.exec("ROLLBACK");
        return;
      } catch {
        server.signal("SIGCONT");
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
    throw new Error("the state store was locked each time");
  } finally {
    state.close();
  }
}

test("a server that is killed while it writes leaves its uploads to the other one, which goes on at once", async () => {
  const random = seeded();
  const doomed = await startServer({ dataDir: left.dataDir });
  const sizeBytes = 4_000_000;
  const url = await tusCreated(right.url, sizeBytes);
  const sample = new Sample("left behind", sizeBytes);
  const request = open("PATCH", at(doomed, url), patchHeaders(0, sizeBytes));
  await request.write(sample.bytes(0, random.between(1_000_000, 3_000_000)));
  await waitUntil(() => openBlobs(doomed).length > 0);
  await doomed.kill();
  const since = performance.now();
  const head = await tusHead(at(right, url));
  expect(head.status).toBe(200);
  const rest = await tusPatch(at(right, url), offsetOf(head), sample.bytes(offsetOf(head)));
  expect([rest.status, performance.now() - since < 3000]).toEqual([204, true]);
  expect(hex(await storedFile(left, String(rest.headers["longshore-handle"])))).toBe(sample.sha256);
  expect(await answerOrNone(request.answer)).toBeNull();
});

test("what one server is told another knows at once: creation, bytes, completion, deletion", async () => {
  const sample = new Sample("told", 10_000);
  const url = await tusCreated(left.url, sample.sizeBytes);
  expect((await tusPatch(at(right, url), 0, sample.bytes(0, 4000))).status).toBe(204);
  expect(offsetOf(await tusHead(at(left, url)))).toBe(4000);
  const client = await connect("a client of 2026-07-28", right.mcpUrl);
  const handle = String((await tusHead(url)).headers["longshore-handle"]);
  const waiting = facts(client, "upload_status", { handle, waitMs: 20_000 });
  expect((await tusPatch(at(left, url), 4000, sample.bytes(4000))).status).toBe(204);
  expect(await waiting).toMatchObject({ status: "complete", sha256: sample.sha256 });
  await facts(client, "file_delete", { handle });
  expect((await tusHead(at(left, url))).status).toBe(404);
});

describe("the first start of all", () => {
  test("eight servers started at once on an empty folder all come up and serve", async () => {
    const dataDir = path.join(folder.path, "eight");
    const servers = await Promise.all(Array.from({ length: 8 }, () => startServer({ dataDir })));
    const [first] = servers;
    const url = await tusCreated(String(first?.url), 8);
    for (const [index, server] of servers.entries()) {
      const answer = await tusPatch(at(server, url), index, String(index));
      expect(answer.status).toBe(204);
    }
    const handle = String((await tusHead(url)).headers["longshore-handle"]);
    for (const server of servers) {
      const client = await connect("a client of 2026-07-28", server.mcpUrl);
      expect((await facts(client, "file_read", { handle, encoding: "text" })).data).toBe("01234567");
    }
    await Promise.all(servers.map(async (server) => expect(await server.stop()).toBe(0)));
    const state = new DatabaseSync(path.join(dataDir, "state.sqlite"), { readOnly: true });
    try {
      expect(state.prepare("SELECT count(*) AS left FROM process").get()).toEqual({ left: 0 });
      expect(state.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
    } finally {
      state.close();
    }
    expect(readFileSync(path.join(dataDir, "FORMAT"), "utf8")).not.toBe("");
  }, 120_000);
});
