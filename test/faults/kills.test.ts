/**
 * The built server is killed with SIGKILL at random moments while one client sends a large file, others create uploads and others
 * finish small ones. After each start every answer that was given before must still be true.
 */
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { program } from "../support/client-programs.ts";
import { connect, type Facts, facts } from "../support/mcp-clients.ts";
import {
  answerOrNone,
  type HttpAnswer,
  http,
  offsetOf,
  open,
  patchHeaders,
  tusCreate,
  tusHead,
  tusPatch,
} from "../support/plain-http.ts";
import { Sample } from "../support/sample.ts";
import { type Seeded, seeded } from "../support/seeded.ts";
import { binary, useServer } from "../support/server-process.ts";
import { waitUntil } from "../support/wait-until.ts";

const running = useServer();

const kills = 20;
const mebibyte = 1 << 20;

const hex = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const sha256Metadata = (sample: Sample): Record<string, string> => ({
  "Upload-Metadata": `sha256 ${Buffer.from(sample.sha256).toString("base64")}`,
});

/** Sends until all is there or the server is gone; what was acknowledged, by answers and by status, is kept. */
class LargeUpload {
  readonly sample = new Sample("large and often killed", 192 * mebibyte);
  url = "";
  handle = "";
  acknowledged = 0;
  complete = false;

  async create(): Promise<void> {
    const answer = await tusCreate(running.url, this.sample.sizeBytes, sha256Metadata(this.sample));
    expect(answer.status).toBe(201);
    this.url = String(answer.headers.location);
    this.handle = String(answer.headers["longshore-handle"]);
  }

  async send(random: Seeded): Promise<void> {
    while (!this.complete) {
      const head = await answerOrNone(tusHead(this.url));
      if (head === null) return;
      expect([200, 423]).toContain(head.status);
      const offset = offsetOf(head);
      this.acknowledge(offset);
      if (head.status === 423) continue;
      if (offset === this.sample.sizeBytes) {
        this.complete = true;
        return;
      }
      const lengthBytes = Math.min(this.sample.sizeBytes - offset, random.between(1, 12 * mebibyte));
      const patch = open("PATCH", this.url, patchHeaders(offset, lengthBytes));
      try {
        // Slow enough that the file is not finished before the last kill.
        for (const piece of this.sample.pieces(offset, offset + lengthBytes)) {
          await patch.write(piece);
          await new Promise((resolve) => setTimeout(resolve, 15));
        }
        patch.end();
      } catch {
        // The answer, or its absence, tells.
      }
      const answer = await answerOrNone(patch.answer);
      if (answer === null) return;
      expect(answer.status).toBe(204);
      expect(offsetOf(answer)).toBe(offset + lengthBytes);
      this.acknowledge(offset + lengthBytes);
    }
  }

  acknowledge(offset: number): void {
    this.acknowledged = Math.max(this.acknowledged, offset);
  }
}

interface Small {
  readonly sample: Sample;
  readonly url: string;
  readonly handle: string;
  /** The greatest offset that an answer told. */
  acknowledged: number;
  complete: boolean;
}

const failed = (answer: HttpAnswer): Error =>
  new Error(`${answer.status} ${JSON.stringify(answer.headers)} ${answer.body}`);

/** Creates uploads until the server is gone. */
async function createMany(smalls: Small[], name: string): Promise<void> {
  for (let count = 0; ; count += 1) {
    const sample = new Sample(`${name} ${count}`, 1 + (count % 5) * 777);
    const answer = await answerOrNone(tusCreate(running.url, sample.sizeBytes));
    if (answer === null) return;
    if (answer.status !== 201) throw failed(answer);
    const { location: url = "", "longshore-handle": handle } = answer.headers;
    smalls.push({ sample, url, handle: String(handle), acknowledged: 0, complete: false });
  }
}

/** Finishes uploads, in one request or in three, until the server is gone. */
async function completeMany(smalls: Small[], name: string): Promise<void> {
  for (let count = 0; ; count += 1) {
    const sample = new Sample(`${name} ${count}`, 1000 + (count % 7) * 60_000);
    const fields = count % 3 === 0 ? sha256Metadata(sample) : {};
    const once = count % 2 === 0;
    const answer = await answerOrNone(
      tusCreate(running.url, sample.sizeBytes, fields, once ? sample.bytes() : undefined),
    );
    if (answer === null) return;
    if (answer.status !== 201) throw failed(answer);
    const { location: url = "", "longshore-handle": handle } = answer.headers;
    const small: Small = {
      sample,
      url,
      handle: String(handle),
      acknowledged: once ? sample.sizeBytes : 0,
      complete: once,
    };
    smalls.push(small);
    const middle = sample.sizeBytes >> 1;
    for (const [start, end] of once
      ? []
      : ([
          [0, middle],
          [middle, sample.sizeBytes],
        ] as const)) {
      const patched = await answerOrNone(tusPatch(url, start, sample.bytes(start, end)));
      if (patched === null) return;
      if (patched.status !== 204) throw failed(patched);
      small.acknowledged = end;
      small.complete = end === sample.sizeBytes;
    }
  }
}

/** Every file that a list tells, with a list of each status walked to its end. */
async function listed(): Promise<Facts[]> {
  const client = await connect("a client of 2026-07-28", running.server.mcpUrl);
  const all: Facts[] = [];
  let cursor: string | undefined;
  do {
    const page = await facts(client, "file_list", { limit: 30, ...(cursor !== undefined && { cursor }) });
    all.push(...(page.files as Facts[]));
    cursor = page.nextCursor as string | undefined;
  } while (cursor !== undefined);
  return all;
}

async function expectTrue(small: Small): Promise<void> {
  const head = await tusHead(small.url);
  const offset = offsetOf(head);
  expect([200, 423], String(head.status)).toContain(head.status);
  expect(head.headers["longshore-handle"]).toBe(small.handle);
  expect(offset).toBeGreaterThanOrEqual(small.acknowledged);
  if (small.complete) expect(offset).toBe(small.sample.sizeBytes);
  if (offset < small.sample.sizeBytes) {
    const rest = await tusPatch(small.url, offset, small.sample.bytes(offset));
    expect(rest.status).toBe(204);
  }
  await waitUntil(async () => (await tusHead(small.url)).headers["longshore-status"] === "complete");
  const digest = (await tusHead(small.url)).headers["repr-digest"];
  expect(digest).toBe(`sha-256=:${Buffer.from(small.sample.sha256, "hex").toString("base64")}:`);
}

test(`after each of ${kills} kills every acknowledged byte and every acknowledged upload is there, and digests are right`, async () => {
  const random = seeded();
  const large = new LargeUpload();
  await large.create();
  const smalls: Small[] = [];
  const all: Small[] = [];

  for (let kill = 0; kill < kills; kill += 1) {
    const work = [
      large.send(random),
      createMany(smalls, `creation ${kill}`),
      completeMany(smalls, `completion ${kill} a`),
      completeMany(smalls, `completion ${kill} b`),
    ];
    const watching = watchStatus(large);
    await new Promise((resolve) => setTimeout(resolve, random.between(5, 500)));
    await running.server.kill();
    await Promise.all(work);
    await watching;
    await running.start();

    const head = await tusHead(large.url);
    expect([200, 423]).toContain(head.status);
    expect(offsetOf(head)).toBeGreaterThanOrEqual(large.acknowledged);
    // The last ones are those that the kill can have hit; the rest is looked at in the end.
    for (const small of smalls.slice(-5)) await expectTrue(small);
    all.push(...smalls.splice(0));
  }
  await large.send(random);
  expect(large.complete).toBe(true);
  await expectTrue({ ...large, acknowledged: large.sample.sizeBytes, complete: true });
  for (const small of all) {
    const head = await tusHead(small.url);
    expect([200, 423]).toContain(head.status);
    expect(offsetOf(head)).toBeGreaterThanOrEqual(small.acknowledged);
  }

  const known = new Map(all.map((small) => [small.handle, small]));
  const files = await listed();
  const handles = new Set(files.map(({ handle }) => handle));
  for (const { handle } of all) expect(handles).toContain(handle);
  const client = await connect("a client of 2025-11-25", running.server.mcpUrl);
  for (const { handle, status, sha256, size } of files) {
    if (status !== "complete") continue;
    const { url } = await facts(client, "file_download", { handle });
    const download = await http("GET", String(url));
    expect([download.status, download.body.byteLength, hex(download.body)]).toEqual([200, size, sha256]);
    const small = known.get(handle);
    if (small !== undefined) expect(sha256).toBe(small.sample.sha256);
  }
  const verified = await program(process.execPath, [
    ...[binary, "verify", "--json", "--data-dir", running.server.dataDir],
  ]);
  expect(verified).toMatchObject({ status: 0 });
  console.info(
    `${all.length} small uploads and ${large.sample.sizeBytes / mebibyte} MiB came through ${kills} kills`,
  );
}, 240_000);

/** An offset that a status tells is as good as one that a PATCH was answered with. */
async function watchStatus(large: LargeUpload): Promise<void> {
  try {
    const client = await connect("a client of 2026-07-28", running.server.mcpUrl);
    while (running.server.isRunning()) {
      const { offset } = await facts(client, "upload_status", { handle: large.handle });
      large.acknowledge(offset);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  } catch {
    // Killed.
  }
}
