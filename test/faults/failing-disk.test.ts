/**
 * Each fault of a disk at each place where a disk is used: the answer is the catalogue's, the offset is true, and once the disk is mended
 * the same upload goes on and ends right. The engine and the doors are real; the disk below the byte store fails on request.
 */
import { readdirSync, readlinkSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { LogEvent } from "../../src/log.ts";
import { openFileBlobs } from "../../src/store/blobs/file-blobs.ts";
import { openSqliteState, type SqliteState } from "../../src/store/state/sqlite.ts";
import type { TransferEngine } from "../../src/transfer/engine.ts";
import { createTransfers } from "../../src/transfer/transfers.ts";
import { testLimits } from "../support/engine.ts";
import { type DiskFault, FaultyDisk } from "../support/faulty-blobs.ts";
import { type FilesServer, startFilesServer } from "../support/http-server.ts";
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
import { waitUntil } from "../support/wait-until.ts";

const mebibyte = 1 << 20;
const faults: readonly DiskFault[] = ["ENOSPC", "EDQUOT", "EIO", "EMFILE"];
const full = { status: 507, code: "storage_full" };
const unavailable = { status: 503, code: "storage_unavailable" };
const answerTo = { ENOSPC: full, EDQUOT: full, EIO: unavailable, EMFILE: unavailable } as const;

const disk = new FaultyDisk();
const events: LogEvent[] = [];
let folder = "";
let state: SqliteState;
let engine: TransferEngine;
let server: FilesServer;
let uploads = 0;

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), "longshore-faulty-"));
  state = await openSqliteState({ dataDir: folder, fsync: "never" });
  const log = (event: LogEvent): void => void events.push(event);
  const { transfers } = await createTransfers({
    state: state.transfers,
    changes: state.changes,
    liveness: state.liveness,
    blobs: disk.wrap(openFileBlobs({ dir: path.join(folder, "blobs"), fsync: "always" })),
    limits: testLimits,
    quota: { maxBytes: null, maxFiles: null },
    minFreeBytes: 1,
    log,
  });
  engine = transfers;
  server = await startFilesServer({ engine });
});

afterEach(async () => {
  disk.mend();
  // Whatever went wrong, no file is left open but those that the next PATCH may go on with, for some seconds.
  await waitUntil(() => openFiles().length === 0);
  expect(events.filter(({ event, code }) => event === "server.fault" || code === "internal_error")).toEqual(
    [],
  );
});

afterAll(async () => {
  await server.close();
  await engine.close();
  await state.close();
  await rm(folder, { recursive: true, force: true });
});

/** Blobs that this process has open; the folders that hold them do not count. */
function openFiles(): string[] {
  const blobs = path.join(folder, "blobs");
  const isBlob = (target: string) => path.dirname(path.dirname(target)) === blobs;
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`);
      return isBlob(target) ? [target] : [];
    } catch {
      return [];
    }
  });
}

const nextSample = (sizeBytes: number): Sample => {
  uploads += 1;
  return new Sample(`faulty ${uploads}`, sizeBytes);
};

const reprDigest = (sample: Sample): string =>
  `sha-256=:${Buffer.from(sample.sha256, "hex").toString("base64")}:`;

function expectAnswer(answer: HttpAnswer, fault: DiskFault): void {
  const { status, code } = answerTo[fault];
  expect([answer.status, problem(answer).code, problem(answer).retryable]).toEqual([status, code, true]);
  expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
  expect(answer.body.toString()).not.toMatch(/made for a test|blobs|E[A-Z]{3,}/);
}

/** The offset that is told, having seen that the bytes before it are the right ones. */
async function trueOffset(url: string, sample: Sample, answer: HttpAnswer): Promise<number> {
  const head = await tusHead(url);
  expect(head.status).toBe(200);
  const offset = offsetOf(head);
  if (answer.headers["upload-offset"] !== undefined) expect(offsetOf(answer)).toBe(offset);
  const prefix = await engine.prefixDigest("local", String(head.headers["longshore-handle"]), 10_000);
  expect(prefix).toEqual({ bytes: offset, sha256: sample.prefixSha256(offset) });
  return offset;
}

async function expectGoesOn(url: string, sample: Sample, offset: number): Promise<void> {
  disk.mend();
  const rest = await tusPatch(url, offset, sample.bytes(offset));
  expect([rest.status, rest.headers["repr-digest"]]).toEqual([204, reprDigest(sample)]);
  await expectStored(String(rest.headers["longshore-handle"]), sample);
}

async function expectStored(handle: string, sample: Sample): Promise<void> {
  const { ticket } = await engine.mintDownload("local", handle, null);
  const { body } = await http("GET", server.links.download(ticket, "a.bin"));
  expect(body.equals(sample.bytes())).toBe(true);
}

const places = [
  { place: "where its file is made", operation: "create", nth: 1 },
  { place: "in its first write", operation: "write", nth: 1 },
  { place: "in its third write", operation: "write", nth: 3 },
  { place: "in its third write, half of which is there", operation: "write", nth: 3, short: true },
  { place: "in its sync", operation: "sync", nth: 1 },
] as const;

describe.each(faults)("a disk that fails with %s", (fault) => {
  test.each(places)(
    "a PATCH $place: the answer is the catalogue's, the offset true, and the rest ends it right",
    async (failure) => {
      const sample = nextSample(5 * mebibyte);
      const url = await tusCreated(server.url, sample.sizeBytes);
      disk.fail({ ...failure, fault });
      const answer = await tusPatch(url, 0, sample.bytes(), { "Content-Length": String(sample.sizeBytes) });
      expect(disk.met).toBeGreaterThan(0);
      expectAnswer(answer, fault);
      const offset = await trueOffset(url, sample, answer);
      if (failure.operation === "write" && failure.nth > 1) {
        // What had been written before counts; of a full disk a little is given back.
        expect(offset).toBeGreaterThanOrEqual(mebibyte);
        expect(offset).toBeLessThan(4 * mebibyte);
      } else expect(offset).toBe(0);
      await expectGoesOn(url, sample, offset);
    },
  );

  test("the second of two PATCHes: what the first had brought stays", async () => {
    const sample = nextSample(3 * mebibyte);
    const url = await tusCreated(server.url, sample.sizeBytes);
    expect((await tusPatch(url, 0, sample.bytes(0, 700_000))).status).toBe(204);
    for (const operation of ["write", "sync"] as const) {
      disk.fail({ operation, nth: 1, fault });
      const answer = await tusPatch(url, 700_000, sample.bytes(700_000));
      expectAnswer(answer, fault);
      expect(await trueOffset(url, sample, answer)).toBe(700_000);
      disk.mend();
    }
    await expectGoesOn(url, sample, 700_000);
  });

  test("a file that comes with its creation: the URL is told, and leads on", async () => {
    for (const failure of [
      { operation: "create", nth: 1, fault },
      { operation: "write", nth: 1, fault },
      { operation: "sync", nth: 1, fault },
    ] as const) {
      const sample = nextSample(600_000);
      disk.fail(failure);
      const answer = await tusCreate(server.url, sample.sizeBytes, {}, sample.bytes());
      expectAnswer(answer, fault);
      const url = String(answer.headers.location);
      expect(await trueOffset(url, sample, answer)).toBe(0);
      await expectGoesOn(url, sample, 0);
    }
  });

  test("a PATCH with a checksum: nothing of it is stored", async () => {
    const sample = nextSample(3 * mebibyte);
    const url = await tusCreated(server.url, sample.sizeBytes);
    const checksum = { "Upload-Checksum": `sha256 ${Buffer.from(sample.sha256, "hex").toString("base64")}` };
    for (const operation of ["write", "sync"] as const) {
      disk.fail({ operation, nth: operation === "write" ? 2 : 1, fault });
      const answer = await tusPatch(url, 0, sample.bytes(), checksum);
      expectAnswer(answer, fault);
      expect(await trueOffset(url, sample, answer)).toBe(0);
      disk.mend();
    }
    await expectGoesOn(url, sample, 0);
  });

  test("a whole file by PUT: the same PUT again ends right", async () => {
    const sample = nextSample(3 * mebibyte);
    const url = await tusCreated(server.url, sample.sizeBytes);
    disk.fail({ operation: "write", nth: 2, fault, forGood: true });
    const answer = await http("PUT", url, { body: sample.bytes() });
    expectAnswer(answer, fault);
    await trueOffset(url, sample, answer);
    disk.mend();
    const again = await http("PUT", url, { body: sample.bytes() });
    expect([again.status, again.headers["repr-digest"]]).toEqual([200, reprDigest(sample)]);
    await expectStored(String(again.headers["longshore-handle"]), sample);
  });

  test("a look at the free space: nothing is begun", async () => {
    const sample = nextSample(1000);
    const url = await tusCreated(server.url, sample.sizeBytes);
    disk.fail({ operation: "freeBytes", nth: 1, fault, forGood: true });
    expectAnswer(await tusCreate(server.url, 10), fault);
    const answer = await tusPatch(url, 0, sample.bytes());
    expectAnswer(answer, fault);
    expect(await trueOffset(url, sample, answer)).toBe(0);
    await expectGoesOn(url, sample, 0);
  });

  test("giving room back, or closing a file: what is acknowledged is not touched by it", async () => {
    const sample = nextSample(5 * mebibyte);
    const url = await tusCreated(server.url, sample.sizeBytes);
    disk.fail({ operation: "close", nth: 1, fault, forGood: true });
    expect((await tusPatch(url, 0, sample.bytes(0, 1000))).status).toBe(204);
    const wrong = { "Upload-Checksum": `sha1 ${Buffer.alloc(20).toString("base64")}` };
    expect((await tusPatch(url, 1000, "x", wrong)).status).toBe(460);
    await expectGoesOn(url, sample, 1000);
  });

  test("a download: an error before its first byte, a broken body after, and the whole file once it is mended", async () => {
    const sample = nextSample(3 * mebibyte);
    const stored = await tusCreate(server.url, sample.sizeBytes, {}, sample.bytes());
    const handle = String(stored.headers["longshore-handle"]);
    const { ticket } = await engine.mintDownload("local", handle, null);
    const url = server.links.download(ticket, "a.bin");
    for (const operation of ["open", "read"] as const) {
      disk.fail({ operation, nth: 1, fault });
      expectAnswer(await http("GET", url), fault);
    }
    disk.fail({ operation: "read", nth: 3, fault });
    await expect(http("GET", url)).rejects.toThrow();
    disk.mend();
    await expectStored(handle, sample);
  });

  test("a resend that is compared with what is stored: an error, and the same again is accepted", async () => {
    const sample = nextSample(2 * mebibyte);
    const url = await tusCreated(server.url, sample.sizeBytes);
    expect((await tusPatch(url, 0, sample.bytes(0, mebibyte))).status).toBe(204);
    disk.fail({ operation: "read", nth: 1, fault });
    const answer = await http("PUT", url, { body: sample.bytes() });
    expectAnswer(answer, fault);
    expect(await trueOffset(url, sample, answer)).toBe(mebibyte);
    disk.mend();
    const again = await http("PUT", url, { body: sample.bytes() });
    expect([again.status, again.headers["repr-digest"]]).toEqual([200, reprDigest(sample)]);
  });
});

describe("a sync that fails at a checkpoint", () => {
  test("ends the PATCH with an error although the next sync would succeed, and none of its bytes count", async () => {
    const sample = nextSample(80 * mebibyte);
    const url = await tusCreated(server.url, sample.sizeBytes);
    // The first is the checkpoint at 64 MiB; from then on the disk says that all is well.
    disk.fail({ operation: "sync", nth: 1, fault: "EIO" });
    const answer = await tusPatch(url, 0, sample.stream(), { "Content-Length": String(sample.sizeBytes) });
    expect(disk.met).toBe(1);
    expectAnswer(answer, "EIO");
    expect(await trueOffset(url, sample, answer)).toBe(0);
    await expectGoesOn(url, sample, 0);
  });

  test("behind one that succeeded leaves the bytes of that one", async () => {
    const sample = nextSample(4 * mebibyte);
    const url = await tusCreated(server.url, sample.sizeBytes);
    const handle = String((await tusHead(url)).headers["longshore-handle"]);
    const request = open("PATCH", url, patchHeaders(0, sample.sizeBytes));
    await request.write(sample.bytes(0, 1_500_000));
    const committed = async (): Promise<number> => (await engine.status("local", handle)).offset;
    await waitUntil(async () => (await committed()) === 1_500_000);
    disk.fail({ operation: "sync", nth: 1, fault: "EIO" });
    await request.write(sample.bytes(1_500_000, 3_000_000));
    const answer = await request.answer;
    request.destroy();
    expectAnswer(answer, "EIO");
    expect(await trueOffset(url, sample, answer)).toBe(1_500_000);
    await expectGoesOn(url, sample, 1_500_000);
  });
});

/** Sends a file in pieces of 1000 bytes, each of which gets a file of its own, since one with a wrong checksum comes before it. */
async function sentInPieces(url: string, sample: Sample, beforeLast = (): void => {}): Promise<void> {
  const wrong = { "Upload-Checksum": `sha1 ${Buffer.alloc(20).toString("base64")}` };
  for (let at = 0; at < sample.sizeBytes; at += 1000) {
    expect((await tusPatch(url, at, "wrong", wrong)).status).toBe(460);
    if (at + 1000 === sample.sizeBytes) beforeLast();
    expect((await tusPatch(url, at, sample.bytes(at, at + 1000))).status).toBe(204);
  }
}

test("a file of many pieces is rewritten only where there is room for a copy, and a copy that fails leaves none behind", async () => {
  const sample = nextSample(20_000);
  const url = await tusCreated(server.url, sample.sizeBytes);
  // Room enough for every write, but with the reserve one byte too little for a second file.
  disk.freeBytes = sample.sizeBytes;
  await sentInPieces(url, sample);
  const { handle } = (await engine.head(url.split("/").at(-1) ?? "")) as { handle: string };
  const pieces = (): string[] =>
    readdirSync(path.join(folder, "blobs"), { recursive: true, encoding: "utf8" }).filter((name) =>
      name.includes(handle.slice(3)),
    );
  const before = pieces();
  const file = await engine.openOwn("local", handle);
  await expect(file.path()).rejects.toMatchObject({ code: "storage_unavailable" });
  expect(pieces()).toEqual(before);
  disk.freeBytes = null;
  disk.fail({ operation: "write", nth: 1, fault: "ENOSPC", forGood: true });
  await expect(file.path()).rejects.toMatchObject({ code: "storage_unavailable" });
  expect(disk.met).toBeGreaterThan(0);
  expect(pieces()).toEqual(before);
  disk.mend();
  expect(await file.path()).toContain(handle.slice(3));
  await expectStored(handle, sample);
});

test("a file of many pieces that cannot be rewritten into one stays as it is, and is read", async () => {
  const sample = nextSample(20_000);
  const url = await tusCreated(server.url, sample.sizeBytes);
  await sentInPieces(url, sample, () => disk.fail({ operation: "sync", nth: 2, fault: "ENOSPC" }));
  await waitUntil(() => events.some(({ event }) => event === "compaction.failed"));
  disk.mend();
  const { handle } = (await engine.head(url.split("/").at(-1) ?? "")) as { handle: string };
  await expectStored(handle, sample);
});
