import { createReadStream } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import type { JsonValue, WrittenFile } from "../../src/tasks/engine.ts";
import { bodyOf, chunkedBodyOf, contentOf, newFile, randomBytes, sha256 } from "../support/engine.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitUntil } from "../support/wait-until.ts";
import { asking, ended, type Handler, me, openJobs, runJob, sharedStore, startJob } from "./task-store.ts";

const shared = sharedStore();

async function stored(file: WrittenFile | JsonValue | undefined): Promise<Buffer> {
  const { handle, size } = file as WrittenFile;
  return contentOf((await shared().transfers.openOwn(me, handle)).stream(0, size));
}

async function* pieces(
  count: number,
  make: (n: number) => Uint8Array | string,
): AsyncGenerator<Uint8Array | string> {
  for (let n = 0; n < count; n += 1) yield make(n);
}

describe("a file that a task writes", () => {
  const bytes = randomBytes(700_000);
  const contents: [string, () => Parameters<Parameters<Handler>[0]["files"]["write"]>[1], Buffer][] = [
    ["a string", () => "grüße 👋", Buffer.from("grüße 👋")],
    ["an empty string", () => "", Buffer.alloc(0)],
    ["bytes", () => bytes, bytes],
    [
      "a stream of bytes",
      () => Readable.from([bytes.subarray(0, 9), bytes.subarray(9)], { objectMode: false }),
      bytes,
    ],
    ["a stream of strings", () => Readable.from(["grü", "ße"]), Buffer.from("grüße")],
    [
      "a function that gives a stream",
      () => () => Readable.from(pieces(3, (n) => `line ${n}\n`)),
      Buffer.from("line 0\nline 1\nline 2\n"),
    ],
    ["a stream of nothing", () => Readable.from([]), Buffer.alloc(0)],
  ];
  it.each(contents)(
    "from %s is stored whole under its name, with its digest",
    async (_what, content, expected) => {
      const task = await runJob(shared(), (c) =>
        c.files.write("report.txt", content(), { contentType: "text/plain" }),
      );
      expect(task).toMatchObject({
        status: "completed",
        result: { filename: "report.txt", size: expected.length, sha256: sha256(expected) },
      });
      expect((await stored(task.result)).equals(expected)).toBe(true);
      const { handle } = task.result as WrittenFile;
      expect(await shared().transfers.status(me, handle)).toMatchObject({
        status: "complete",
        contentType: "text/plain",
        filename: "report.txt",
      });
    },
  );

  it("much larger than memory should grow streams through", async () => {
    const piece = randomBytes(1 << 20);
    const before = process.memoryUsage().arrayBuffers;
    let most = 0;
    const task = await runJob(shared(), (c) =>
      c.files.write("large.bin", () =>
        Readable.from(
          pieces(128, () => {
            most = Math.max(most, process.memoryUsage().arrayBuffers - before);
            return piece;
          }),
          { objectMode: false },
        ),
      ),
    );
    expect(task).toMatchObject({ status: "completed", result: { size: 128 << 20 } });
    expect(most).toBeLessThan(64 << 20);
  });

  it("whose stream fails throws that error and leaves nothing behind", async () => {
    const store = await openJobs((c) =>
      c.files.write("broken.bin", () =>
        Readable.from(
          pieces(5, (n) => {
            if (n === 3) throw new Error("the source broke");
            return randomBytes(400_000);
          }),
          { objectMode: false },
        ),
      ),
    );
    const task = await ended(store.tasks, await startJob(store.tasks));
    expect(task).toMatchObject({ status: "failed", error: { message: "the source broke" } });
    expect((await store.transfers.list(me, { status: null, limit: 10, cursor: null })).transfers).toEqual([]);
  });

  it("is not written again on a replay, and a stream given then is closed unread", async () => {
    const dataDir = await tempDir();
    const source = path.join(await tempDir(), "source");
    await writeFile(source, "once");
    const streams: Readable[] = [];
    const handler: Handler = async (c) => {
      const stream = createReadStream(source);
      streams.push(stream);
      const file = await c.files.write("copy.txt", stream);
      await c.needInput({ prompt: "?" });
      return file;
    };
    const before = await openJobs(handler, { dataDir });
    const taskId = await startJob(before.tasks);
    await asking(before.tasks, taskId);
    await before.close();
    const { tasks, transfers } = await openJobs(handler, { dataDir });
    await tasks.respond(me, taskId, null, { action: "accept", value: "x" });
    expect(await ended(tasks, taskId)).toMatchObject({ result: { sha256: sha256(Buffer.from("once")) } });
    expect((await transfers.list(me, { status: null, limit: 10, cursor: null })).transfers).toHaveLength(1);
    expect(streams).toHaveLength(2);
    expect(streams.every(({ destroyed }) => destroyed)).toBe(true);
    expect(streams[1]?.listenerCount("data")).toBe(0);
  });

  it("is one file where the process ended in the middle of it, with what the replay gave", async () => {
    const dataDir = await tempDir();
    let entries = 0;
    const handler: Handler = async (c) => {
      entries += 1;
      const stuck = entries === 1;
      const file = await c.files.write("half.bin", () =>
        Readable.from(
          (async function* () {
            yield Buffer.from(`entry ${entries}`);
            if (stuck) await new Promise(() => {});
          })(),
          { objectMode: false },
        ),
      );
      return file;
    };
    const before = await openJobs(handler, { dataDir });
    const taskId = await startJob(before.tasks);
    await waitUntil(
      async () =>
        (await before.transfers.list(me, { status: null, limit: 10, cursor: null })).transfers.length === 1,
    );
    await before.close();
    const { tasks, transfers } = await openJobs(handler, { dataDir });
    expect(await ended(tasks, taskId)).toMatchObject({
      status: "completed",
      result: { sha256: sha256(Buffer.from("entry 2")) },
    });
    const left = (await transfers.list(me, { status: null, limit: 10, cursor: null })).transfers;
    expect(left).toMatchObject([{ status: "complete", filename: "half.bin" }]);
  });

  it("of one name with another needs a step name of its own", async () => {
    const task = await runJob(shared(), async (c) => [
      await c.files.write("a.txt", "1"),
      await c.files.write("a.txt", "2", { name: "second a.txt" }),
    ]);
    expect(task.status).toBe("completed");
    const again = await runJob(shared(), async (c) => [
      await c.files.write("a.txt", "1"),
      await c.files.write("a.txt", "2"),
    ]);
    expect(again).toMatchObject({
      status: "failed",
      error: { message: expect.stringContaining("file: a.txt") },
    });
  });
});

describe("a file that a task opens", () => {
  it("is read as a stream, in part, and by a path on this machine", async () => {
    const { transfers } = shared();
    const bytes = randomBytes(100_000);
    const { transfer } = await transfers.createWith(me, newFile({ sizeBytes: bytes.length }), {
      offset: 0,
      body: bodyOf(bytes),
    });
    const task = await runJob(shared(), async (c) => {
      const file = await c.files.open(transfer.handle);
      const whole = await contentOf(file.stream());
      const part = await contentOf(file.stream(10, 20));
      const byPath = await readFile((await file.path()) ?? "");
      return [
        sha256(whole),
        part.equals(bytes.subarray(10, 20)),
        byPath.equals(bytes),
        file.transfer.sizeBytes,
      ];
    });
    expect(task.result).toEqual([sha256(bytes), true, true, bytes.length]);
  });

  it("has a path where it lies in several pieces, and where it is empty", async () => {
    const dataDir = await tempDir();
    const before = await openJobs(() => 1, { dataDir });
    const bytes = randomBytes(3_000);
    const { transfer, ticket } = await before.transfers.create(me, newFile());
    await before.transfers.append(ticket, { offset: 0, body: chunkedBodyOf(bytes.subarray(0, 1_000)) });
    await before.close();
    const store = await openJobs(
      async (c, args) => {
        const { handles } = args as { handles: string[] };
        const paths = await Promise.all(handles.map(async (handle) => (await c.files.open(handle)).path()));
        return Promise.all(paths.map(async (one) => (await readFile(one ?? "")).toString("base64")));
      },
      { dataDir },
    );
    await store.transfers.append(ticket, {
      offset: 1_000,
      body: chunkedBodyOf(bytes.subarray(1_000)),
      final: true,
    });
    const empty = await store.transfers.create(me, newFile({ sizeBytes: 0 }));
    const taskId = await startJob(store.tasks, { handles: [transfer.handle, empty.transfer.handle] });
    expect((await ended(store.tasks, taskId)).result).toEqual([bytes.toString("base64"), ""]);
    // The file is still whole by its handle.
    const file = await store.transfers.openOwn(me, transfer.handle);
    expect((await contentOf(file.stream(0, 3_000))).equals(bytes)).toBe(true);
  });

  it("of another principal or none is unknown", async () => {
    const { transfers } = shared();
    const { transfer } = await transfers.createWith("other", newFile({ sizeBytes: 1 }), {
      offset: 0,
      body: bodyOf(Buffer.from("x")),
    });
    for (const handle of [transfer.handle, "fh_nothing"]) {
      const task = await runJob(shared(), async (c) => void (await c.files.open(handle)));
      expect(task).toMatchObject({ status: "failed", error: { code: "unknown_handle" } });
    }
  });
});
