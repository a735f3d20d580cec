/** The disk of the data folder becomes full: answers say so, what was acknowledged stays, and it goes on once there is space. */
import { statfsSync, statSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, type TestContext, test } from "vitest";
import { program } from "../support/client-programs.ts";
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
import { binary, type ServerProcess, startServer } from "../support/server-process.ts";
import { type SmallDisk, smallDisk } from "../support/small-disk.ts";
import { waitUntil } from "../support/wait-until.ts";

const mebibyte = 1 << 20;

function expectFull(answer: HttpAnswer): void {
  expect([answer.status, problem(answer).code, problem(answer).retryable]).toEqual([
    507,
    "storage_full",
    true,
  ]);
  expect(answer.body.toString()).not.toMatch(/ENOSPC|\/tmp|SQLITE/);
}

const reprDigest = (sample: Sample): string =>
  `sha-256=:${Buffer.from(sample.sha256, "hex").toString("base64")}:`;

/** A disk of its own and a server on it; the test is skipped where nothing can be mounted. */
async function onDisk(
  context: TestContext,
  flags: readonly string[] = [],
): Promise<{ disk: SmallDisk; server: ServerProcess; killAndStart(): Promise<ServerProcess> }> {
  const disk = smallDisk(48);
  if ("why" in disk) return context.skip(disk.why);
  context.onTestFinished(disk.unmount);
  let server = await startServer({ dataDir: path.join(disk.path, "data"), flags });
  context.onTestFinished(async () => {
    // Registered last, so it comes first.
    disk.free();
    const status = await server.stop().finally(() => server.kill());
    expect(status).toBe(0);
  });
  return {
    disk,
    server,
    async killAndStart() {
      await server.kill();
      server = await startServer(server.options);
      return server;
    },
  };
}

const bytesFree = ({ path: mount }: SmallDisk): number => {
  const { bavail, bsize } = statfsSync(mount);
  return bavail * bsize;
};

/** The log of the state store has some room of its own; it is used up sooner or later. */
async function untilRefused(server: ServerProcess): Promise<HttpAnswer> {
  for (let count = 0; count < 3000; count += 1) {
    const answer = await tusCreate(server.url, 5, { "Upload-Metadata": `filename ${"YWFh".repeat(60)}` });
    if (answer.status !== 201) return answer;
  }
  throw new Error("nothing was refused");
}

/** Whole files, made until so many are there or one is refused. */
async function filesOf(server: ServerProcess, sizeBytes: number, count: number): Promise<string[]> {
  const urls: string[] = [];
  const body = new Sample("one of many", sizeBytes).bytes();
  while (urls.length < count) {
    const answer = await tusCreate(server.url, sizeBytes, {}, body);
    if (answer.status !== 201) {
      expectFull(answer);
      break;
    }
    urls.push(String(answer.headers.location));
  }
  return urls;
}

async function deleteAll(urls: readonly string[]): Promise<void> {
  const statuses = new Set<number>();
  for (let at = 0; at < urls.length; at += 20) {
    const some = urls.slice(at, at + 20);
    const answers = some.map((url) => http("DELETE", url, { headers: { "Tus-Resumable": "1.0.0" } }));
    for (const { status } of await Promise.all(answers)) statuses.add(status);
  }
  expect([...statuses]).toEqual([204]);
}

/** As if a minute had passed. */
function ageGarbage(server: ServerProcess): void {
  const state = new DatabaseSync(path.join(server.dataDir, "state.sqlite"), { timeout: 10_000 });
  expect(state.prepare("UPDATE garbage SET since = since - 61000").run().changes).toBeGreaterThan(1);
  state.close();
}

async function sweep(server: ServerProcess, minFreeBytes: string): Promise<{ removedBlobs: number }> {
  const swept = await program(process.execPath, [
    ...[binary, "sweep", "--json", "--data-dir", server.dataDir, "--min-free-bytes", minFreeBytes],
  ]);
  expect(swept).toMatchObject({ status: 0 });
  return JSON.parse(swept.stdout) as { removedBlobs: number };
}

describe("a disk of 48 MiB", () => {
  test("that becomes full in the middle of a PATCH gives 507 and the true offset; with space again the same upload ends right", async (context) => {
    const { disk, server } = await onDisk(context);
    const sample = new Sample("too much", 30 * mebibyte);
    disk.fill(12 * mebibyte);
    const url = await tusCreated(server.url, sample.sizeBytes);
    const full = await tusPatch(url, 0, sample.stream(), { "Content-Length": String(sample.sizeBytes) });
    expectFull(full);
    const told = offsetOf(full);
    expect(told).toBeGreaterThan(mebibyte);
    expect(told).toBeLessThan(sample.sizeBytes);
    const head = await tusHead(url);
    expect([head.status, offsetOf(head)]).toEqual([200, told]);
    const handle = String(head.headers["longshore-handle"]);
    const client = await connect("a client of 2026-07-28", server.mcpUrl);
    const { prefix } = await facts(client, "upload_status", { handle, prefixDigest: true });
    expect(prefix).toMatchObject({ bytes: told, sha256: sample.prefixSha256(told) });

    // Still full: the same again, and the offset does not go back.
    const still = await tusPatch(url, told, sample.stream(told), {
      "Content-Length": String(sample.sizeBytes - told),
    });
    expectFull(still);
    expect(offsetOf(still)).toBeGreaterThanOrEqual(told);

    disk.free();
    const offset = offsetOf(await tusHead(url));
    const rest = await tusPatch(url, offset, sample.stream(offset), {
      "Content-Length": String(sample.sizeBytes - offset),
    });
    expect([rest.status, rest.headers["longshore-status"]]).toEqual([204, "complete"]);
    expect(rest.headers["repr-digest"]).toBe(reprDigest(sample));
    await facts(client, "file_delete", { handle });
  });

  test("with no byte left gives a clear error to every writer while reading goes on, and everything works once there is space", async (context) => {
    const { disk, server } = await onDisk(context);
    const stored = new Sample("stored", 200_000);
    const whole = await tusCreate(server.url, stored.sizeBytes, {}, stored.bytes());
    const waiting = await tusCreated(server.url, 100_000);
    const client = await connect("a client of 2026-07-28", server.mcpUrl);
    const { url: download } = await facts(client, "file_download", {
      handle: whole.headers["longshore-handle"],
    });
    disk.fill(0);
    expectFull(await untilRefused(server));
    expectFull(await tusPatch(waiting, 0, Buffer.alloc(100_000)));
    const error = await failure(client, "upload_create", { filename: "a.bin", size: 5 });
    expect(error).toMatchObject({ code: "storage_full", retryable: true });
    expect((await tusHead(waiting)).status).toBe(200);
    expect((await http("GET", download as string)).body.equals(stored.bytes())).toBe(true);
    expect((await http("GET", `${server.url}/healthz`)).status).toBe(200);

    disk.free();
    const head = await tusHead(waiting);
    const rest = await tusPatch(waiting, offsetOf(head), Buffer.alloc(100_000 - offsetOf(head)));
    expect([rest.status, rest.headers["longshore-status"]]).toEqual([204, "complete"]);
    expect((await tusCreate(server.url, 5)).status).toBe(201);
  });

  test("with no byte left lets uploads be deleted and swept, by the server and beside it, until there is space for the others", async (context) => {
    const { disk, server } = await onDisk(context);
    const ballast = path.join(server.dataDir, "ballast");
    const wholeBytes = statSync(ballast).size;
    expect(wholeBytes).toBe(3 * mebibyte);
    const client = await connect("a client of 2026-07-28", server.mcpUrl);
    const [mine, large] = [new Sample("goes on", 3 * mebibyte), new Sample("deleted", 8 * mebibyte)];
    const url = await tusCreated(server.url, mine.sizeBytes);
    await tusPatch(url, 0, mine.bytes(0, mebibyte));
    const unwanted = await tusCreated(server.url, large.sizeBytes);
    expect((await tusPatch(unwanted, 0, large.bytes())).status).toBe(204);
    const alsoUnwanted = await tusCreate(server.url, large.sizeBytes, {}, large.bytes());
    const handle = String(alsoUnwanted.headers["longshore-handle"]);
    disk.fill(0);
    await untilRefused(server);
    expect(bytesFree(disk)).toBe(0);

    expect((await http("DELETE", unwanted, { headers: { "Tus-Resumable": "1.0.0" } })).status).toBe(204);
    expect((await tusHead(unwanted)).status).toBe(404);
    await facts(client, "file_delete", { handle });
    // The ballast serves nobody else; what is free now, the log had.
    expect(bytesFree(disk)).toBeLessThan(mebibyte);
    expect(statSync(ballast).size).toBe(wholeBytes);
    await untilRefused(server);
    expectFull(await tusPatch(url, mebibyte, mine.bytes(mebibyte)));

    // A minute later, which needs space that nobody has.
    disk.free();
    ageGarbage(server);
    disk.fill(0);
    await untilRefused(server);
    expect((await sweep(server, "0")).removedBlobs).toBe(2);
    expect(bytesFree(disk)).toBeGreaterThan(14 * mebibyte);
    const offset = offsetOf(await tusHead(url));
    const rest = await tusPatch(url, offset, mine.bytes(offset));
    expect([rest.status, rest.headers["longshore-status"]]).toEqual([204, "complete"]);
    expect(rest.headers["repr-digest"]).toBe(reprDigest(mine));
    // The process that is there next has a whole one again.
    await server.stop();
    await (await startServer(server.options)).stop();
    expect(statSync(ballast).size).toBe(wholeBytes);
  });

  test.for([12_000, 20_000])(
    "with no byte left lets every file of %i bytes be deleted and swept, and then has their room",
    async (sizeBytes, context) => {
      const { disk, server } = await onDisk(context);
      const before = bytesFree(disk);
      const urls = await filesOf(server, sizeBytes, 400);
      expect(urls.length).toBe(400);
      disk.fill(0);
      await untilRefused(server);
      expect(bytesFree(disk)).toBe(0);
      expect((await http("GET", `${server.url}/readyz`)).status).toBe(507);
      await deleteAll(urls);

      disk.free();
      ageGarbage(server);
      disk.fill(0);
      await untilRefused(server);
      expect((await sweep(server, "0")).removedBlobs).toBe(400);
      disk.free();
      expect(bytesFree(disk)).toBeGreaterThan(before - 4 * mebibyte);
    },
  );

  test("that small files have filled down to the reserve takes new ones once those are deleted and swept", async (context) => {
    const { disk, server } = await onDisk(context, ["--min-free-bytes", "20MiB"]);
    const urls = await filesOf(server, 12_000, 3000);
    expect(urls.length).toBeLessThan(3000);
    await deleteAll(urls);
    ageGarbage(server);
    expect((await sweep(server, "20MiB")).removedBlobs).toBe(urls.length);
    // Of 48 MiB: the ballast, and what a store without files has.
    expect(bytesFree(disk)).toBeGreaterThan(42 * mebibyte);
    await waitUntil(async () => (await http("GET", `${server.url}/readyz`)).status === 200);
    await waitUntil(async () => (await filesOf(server, 12_000, 1)).length === 1);
  });

  test("with no byte left is where a first process still starts, and deletes", async (context) => {
    const { disk, server } = await onDisk(context);
    const large = new Sample("deleted later", 8 * mebibyte);
    const url = await tusCreated(server.url, large.sizeBytes);
    expect((await tusPatch(url, 0, large.bytes())).status).toBe(204);
    expect(await server.stop()).toBe(0);
    disk.fill(0);
    const again = await startServer(server.options);
    context.onTestFinished(again.kill);
    expect((await http("DELETE", url, { headers: { "Tus-Resumable": "1.0.0" } })).status).toBe(204);
    expect(await again.stop()).toBe(0);
  });

  test("a server killed while the disk is full starts again, reads, and writes once there is space", async (context) => {
    const { disk, server: first, killAndStart } = await onDisk(context);
    const sample = new Sample("killed when full", 20 * mebibyte);
    const url = await tusCreated(first.url, sample.sizeBytes);
    disk.fill(3 * mebibyte);
    const full = await tusPatch(url, 0, sample.stream(), { "Content-Length": String(sample.sizeBytes) });
    expectFull(full);
    first.signal("SIGKILL");
    // A little room, as somebody makes who sees the trouble: the process needs its own small files.
    disk.free();
    disk.fill(mebibyte);
    const again = await killAndStart();
    const head = await tusHead(url);
    expect([head.status, offsetOf(head)]).toEqual([200, offsetOf(full)]);
    disk.free();
    const rest = await tusPatch(url, offsetOf(full), sample.bytes(offsetOf(full)));
    expect(rest.status).toBe(204);
    const client = await connect("a client of 2025-11-25", again.mcpUrl);
    const handle = String(rest.headers["longshore-handle"]);
    const status = await facts(client, "upload_status", { handle, waitMs: 20_000 });
    expect(status).toMatchObject({ status: "complete", sha256: sample.sha256 });
    await facts(client, "file_delete", { handle });
  });

  test("with less free space than is kept in reserve nothing is written and reading goes on", async (context) => {
    const { disk, server: frugal } = await onDisk(context, ["--min-free-bytes", "8MiB"]);
    const stored = await tusCreate(frugal.url, 5, {}, "hello");
    const url = await tusCreated(frugal.url, 1000);
    disk.fill(4 * mebibyte);
    // The disk is looked at once in a second.
    let refusedCreation = await tusCreate(frugal.url, 5);
    await waitUntil(async () => {
      refusedCreation = await tusCreate(frugal.url, 5);
      return refusedCreation.status !== 201;
    });
    expectFull(refusedCreation);
    const refused = await tusPatch(url, 0, Buffer.alloc(1000));
    expectFull(refused);
    expect(offsetOf(refused)).toBe(0);
    expect((await http("GET", `${frugal.url}/readyz`)).status).toBe(507);
    const client = await connect("a client of 2026-07-28", frugal.mcpUrl);
    const handle = stored.headers["longshore-handle"];
    expect((await facts(client, "file_read", { handle, encoding: "text" })).data).toBe("hello");
    disk.free();
    await waitUntil(async () => (await tusPatch(url, 0, Buffer.alloc(1000))).status === 204);
    expect((await http("GET", `${frugal.url}/readyz`)).status).toBe(200);
  });

  test("that falls below the reserve while a PATCH runs ends it with 507, and keeps what has come", async (context) => {
    const { server: frugal } = await onDisk(context, ["--min-free-bytes", "20MiB"]);
    const sample = new Sample("into the reserve", 30 * mebibyte);
    const url = await tusCreated(frugal.url, sample.sizeBytes);
    const request = open("PATCH", url, patchHeaders(0, sample.sizeBytes));
    await request.write(sample.bytes(0, 26 * mebibyte));
    // Bytes go on coming; the server looks at the disk from time to time.
    let sent = 26 * mebibyte;
    const full = await Promise.race([
      request.answer,
      (async (): Promise<never> => {
        for (; sent < sample.sizeBytes - 1; sent += 4096) {
          await request.write(sample.bytes(sent, sent + 4096)).catch(() => {});
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
        throw new Error("the whole reserve was given away");
      })(),
    ]);
    request.destroy();
    expectFull(full);
    expect(offsetOf(full)).toBeGreaterThanOrEqual(25 * mebibyte);
    expect(offsetOf(await tusHead(url))).toBe(offsetOf(full));
    expect((await http("DELETE", url, { headers: { "Tus-Resumable": "1.0.0" } })).status).toBe(204);
  });
});
