/** Faults that upload servers are known for, and that no other test here looks for: each test says what holds instead. */
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { Upload } from "tus-js-client";
import { describe, expect, onTestFinished, test } from "vitest";
import { openFileBlobs } from "../../src/store/blobs/file-blobs.ts";
import { openSqliteState } from "../../src/store/state/sqlite.ts";
import type { BlobStore } from "../../src/transfer/blob-store.ts";
import type { TransferEngine } from "../../src/transfer/engine.ts";
import { Gather, GatherBudget } from "../../src/transfer/gather.ts";
import { createTransfers } from "../../src/transfer/transfers.ts";
import { bodyOf, newFile, openBody, testLimits } from "../support/engine.ts";
import { type FilesServer, type FilesServerOptions, startFilesServer } from "../support/http-server.ts";
import { tempDir } from "../support/temp-dir.ts";
import { base64, created, fieldsOf, head, patch, sha256, someBytes } from "../support/tus-requests.ts";

async function serverWith(options: FilesServerOptions = {}): Promise<FilesServer> {
  const server = await startFilesServer(options);
  onTestFinished(() => server.close());
  return server;
}

/** An engine whose disk keeps each write for as long as `held` is not resolved. */
async function engineOnSlowDisk(held: Promise<void>, onWrite: () => void): Promise<TransferEngine> {
  const dataDir = await tempDir();
  const state = await openSqliteState({ dataDir, fsync: "never" });
  const blobs = openFileBlobs({ dir: path.join(dataDir, "blobs"), fsync: "never" });
  const slow: BlobStore = {
    ...blobs,
    async create(name) {
      const writer = await blobs.create(name);
      return {
        async write(pieces, position) {
          onWrite();
          await held;
          await writer.write(pieces, position);
        },
        sync: () => writer.sync(),
        cut: (position) => writer.cut(position),
        close: () => writer.close(),
      };
    },
  };
  const { transfers } = await createTransfers({
    state: state.transfers,
    changes: state.changes,
    liveness: state.liveness,
    blobs: slow,
    limits: testLimits,
    quota: { maxBytes: null, maxFiles: null },
    minFreeBytes: 0,
    log: () => {},
  });
  onTestFinished(async () => {
    await transfers.close();
    await state.close();
  });
  return transfers;
}

test("waiting for an upload that another request holds takes no processor time", async () => {
  let release = (): void => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  let wrote = (): void => {};
  const writing = new Promise<void>((resolve) => {
    wrote = resolve;
  });
  const engine = await engineOnSlowDisk(held, () => wrote());
  const { ticket, transfer } = await engine.create("local", newFile({ sizeBytes: 3 << 20 }));
  const body = openBody();
  const first = engine.append(ticket, { offset: 0, body });
  body.feed(someBytes(2 << 20));
  await writing;
  // Its disk holds the writer up, so whoever looks waits for it to end.
  const looks = Array.from({ length: 50 }, () => engine.head(ticket));
  const before = process.cpuUsage();
  await wait(1000);
  const { user, system } = process.cpuUsage(before);
  // A core that spins would have used all of it.
  expect((user + system) / 1e6).toBeLessThan(0.5);
  release();
  await expect(first).rejects.toMatchObject({ code: "upload_locked" });
  expect(new Set((await Promise.all(looks)).map(({ offset }) => offset))).toEqual(new Set([2 << 20]));
  const rest = someBytes(3 << 20).subarray(2 << 20);
  const last = await engine.append(ticket, { offset: 2 << 20, body: bodyOf(rest) });
  expect(last.transfer).toMatchObject({ handle: transfer.handle, offset: 3 << 20 });
});

test("a query behind an upload URL is no part of the id, whatever the method", async () => {
  const server = await serverWith();
  const url = await created(server.url, { "Upload-Length": "6" });
  const handle = fieldsOf(await head(url))["longshore-handle"];
  const asked = `${url}?a=b&c`;
  for (const response of [
    await patch(asked, 0, "abc"),
    await head(asked),
    await fetch(asked, { method: "PUT", body: "abcdef" }),
    await fetch(asked, { method: "DELETE" }),
  ])
    expect([response.ok, response.headers.get("longshore-handle")]).toEqual([true, handle]);
  expect((await head(url)).status).toBe(404);
});

test("an upload is completed once: empty PATCHes at the end repeat the answer, and nothing happens again", async () => {
  const server = await serverWith();
  const bytes = someBytes(300_000);
  const url = await created(server.url, { "Upload-Length": String(bytes.length) });
  const last = await patch(url, 0, bytes);
  const { "longshore-handle": handle = "", "repr-digest": digest } = fieldsOf(last);
  const before = await server.engine.status("local", handle);
  const logged = server.logged.length;
  for (let time = 0; time < 5; time += 1) {
    const again = await patch(url, bytes.length, "");
    expect([again.status, again.headers.get("repr-digest")]).toEqual([204, digest]);
  }
  expect(await server.engine.status("local", handle)).toEqual(before);
  expect(server.logged.length).toBe(logged);
});

describe("a server fault in the place of the last answer", () => {
  /** The upload comes to its end as always, but the client is told of a fault, once. */
  async function faultyAtTheEnd(): Promise<FilesServer> {
    let faults = 1;
    return serverWith({
      wrapEngine: (engine) =>
        Object.assign(Object.create(engine) as TransferEngine, {
          limits: engine.limits,
          head: engine.head.bind(engine),
          append: async (...given: Parameters<TransferEngine["append"]>) => {
            const [ended] = await Promise.allSettled([engine.append(...given)]);
            if (faults > 0) {
              faults -= 1;
              throw new Error("a fault after the last byte");
            }
            if (ended.status === "rejected") throw ended.reason;
            return ended.value;
          },
          create: engine.create.bind(engine),
          status: engine.status.bind(engine),
        }),
    });
  }

  function upload(server: FilesServer, file: Buffer, announced: string): Promise<Upload> {
    return new Promise((resolve, reject) => {
      const one: Upload = new Upload(file, {
        endpoint: `${server.url}/files`,
        retryDelays: [0, 10, 20],
        metadata: { sha256: announced },
        onError: reject,
        onSuccess: () => resolve(one),
      });
      one.start();
    });
  }

  const bytes = someBytes(400_000);

  test("lets tus-js-client report success where the file is complete", async () => {
    const server = await faultyAtTheEnd();
    const done = await upload(server, bytes, sha256(bytes));
    const { "longshore-status": status, "repr-digest": digest } = fieldsOf(await head(done.url ?? ""));
    expect([status, digest]).toEqual([
      "complete",
      `sha-256=:${Buffer.from(sha256(bytes), "hex").toString("base64")}:`,
    ]);
  });

  test("never lets tus-js-client report success where it is another file than announced", async () => {
    const server = await faultyAtTheEnd();
    await expect(upload(server, bytes, sha256("another"))).rejects.toThrow(/422/);
    const url = await created(server.url, {
      "Upload-Length": "3",
      "Upload-Metadata": `sha256 ${base64(sha256("another"))}`,
    });
    expect((await patch(url, 0, "abc")).status).toBe(422);
  });
});

test("chunks of one byte cost what their bytes cost, not a piece of memory each", () => {
  const gather = new Gather();
  const bytes = someBytes(1 << 20);
  for (let at = 0; at < bytes.length; at += 1) gather.add(bytes.subarray(at, at + 1));
  const pieces = gather.take();
  expect(Buffer.concat(pieces).equals(bytes)).toBe(true);
  const kept = new Set(pieces.map(({ buffer }) => buffer));
  expect(kept.has(bytes.buffer)).toBe(false);
  expect(pieces.length).toBeLessThan(50);
  expect([...kept].reduce((sum, { byteLength }) => sum + byteLength, 0)).toBeLessThan(1.2 * (1 << 20));
});

test("the writers of a process share one budget: the more there are, the less each gathers", () => {
  const budget = new GatherBudget(48 << 20);
  for (let writers = 1; writers <= 384; writers += 1) {
    budget.enter();
    expect(2 * budget.shareBytes * writers).toBeLessThanOrEqual(48 << 20);
  }
  for (let writers = 384; writers > 0; writers -= 1) budget.leave();
  expect(budget.shareBytes).toBe(1 << 20);
});
