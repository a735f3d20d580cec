import { createHash, randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { me } from "../task-store.ts";
import { bytesOf, filenames, openKinds, resultOf, runKind, startKind, until } from "./kinds-store.ts";
import { sendFile, serveSource } from "./source-server.ts";

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const sample = randomBytes(300_000);

describe("file_import over HTTP", () => {
  it("stores what the URL gives, under the name that the source says, and tells handle, size, digest and type", async () => {
    const source = await serveSource((request, response, account) =>
      sendFile(request, response, account, {
        bytes: sample,
        headers: {
          "content-type": "text/csv",
          "content-disposition": "attachment; filename*=UTF-8''%E2%82%AC%20rates.csv",
        },
      }),
    );
    const store = await openKinds();
    const result = await resultOf<{ handle: string }>(store, "file_import", {
      url: `${source.url}/x?token=secret#part`,
    });
    expect(result).toEqual({
      handle: result.handle,
      filename: "€ rates.csv",
      size: sample.byteLength,
      sha256: sha256(sample),
      contentType: "text/csv",
    });
    expect((await bytesOf(store, result.handle)).equals(sample)).toBe(true);
    expect(source.requests).toHaveLength(1);
  });

  it.each([
    ["/a/b%20c.txt", undefined, "b c.txt"],
    ["/a/", undefined, "127.0.0.1"],
    ["/%2e%2e%2fpasswd", undefined, "passwd"],
    ["/x", 'attachment; filename="../../etc/passwd"', "passwd"],
    ["/x.bin", "attachment; filename=", "x.bin"],
  ])("names what comes from %s with disposition %j %s", async (path, disposition, filename) => {
    const headers: Record<string, string> =
      disposition === undefined ? {} : { "content-disposition": disposition };
    const source = await serveSource((request, response, account) =>
      sendFile(request, response, account, { bytes: sample, headers }),
    );
    const store = await openKinds();
    expect(await resultOf(store, "file_import", { url: source.url + path })).toMatchObject({ filename });
  });

  it("stores bytes as they are sent, and undoes no encoding", async () => {
    const source = await serveSource((request, response, account) => {
      expect(request.headers["accept-encoding"]).toBe("identity");
      sendFile(request, response, account, { bytes: sample, headers: { "content-encoding": "gzip" } });
    });
    const store = await openKinds();
    expect(await resultOf(store, "file_import", { url: source.url })).toMatchObject({
      sha256: sha256(sample),
    });
  });

  it("stores an empty file, and one whose length the source does not tell", async () => {
    const source = await serveSource((request, response, account) =>
      sendFile(request, response, account, {
        bytes: request.url === "/empty" ? Buffer.alloc(0) : sample,
        chunked: true,
      }),
    );
    const store = await openKinds();
    expect(await resultOf(store, "file_import", { url: `${source.url}/empty` })).toMatchObject({
      size: 0,
      sha256: sha256(Buffer.alloc(0)),
    });
    expect(await resultOf(store, "file_import", { url: `${source.url}/all` })).toMatchObject({
      size: 300_000,
      sha256: sha256(sample),
    });
  });

  it("goes on with Range and If-Range where the connection broke off, and asks for nothing that is stored already", async () => {
    let broken = 0;
    const source = await serveSource((request, response, account) => {
      broken += 1;
      sendFile(request, response, account, { bytes: sample, ...(broken <= 5 && { breakAfter: 40_000 }) });
    });
    const store = await openKinds();
    expect(await resultOf(store, "file_import", { url: source.url })).toMatchObject({
      sha256: sha256(sample),
    });
    const [first, ...later] = source.requests;
    expect(first).toMatchObject({ range: null, ifRange: null });
    expect(later).toHaveLength(5);
    expect(new Set(later.map(({ ifRange }) => ifRange))).toEqual(new Set(['"v1"']));
    const offsets = later.map(({ range }) => Number(/^bytes=(\d+)-$/.exec(range ?? "")?.[1]));
    expect(offsets).toEqual(offsets.toSorted((a, b) => a - b));
    // What a broken connection had under way may come again, and no more.
    const sentBytes = source.requests.reduce((sum, request) => sum + request.sentBytes, 0);
    expect(sentBytes).toBeLessThan(sample.byteLength + 5 * 40_000);
    expect(offsets.at(-1)).toBeGreaterThan(0);
  });

  it("goes on by Last-Modified where there is no entity tag", async () => {
    const lastModified = "Mon, 03 Mar 2025 10:00:00 GMT";
    let broken = 0;
    const source = await serveSource((request, response, account) => {
      expect([undefined, lastModified]).toContain(request.headers["if-range"]);
      delete request.headers["if-range"];
      broken += 1;
      const headers = { "last-modified": lastModified };
      sendFile(request, response, account, {
        bytes: sample,
        etag: "",
        headers,
        ...(broken === 1 && { breakAfter: 100_000 }),
      });
    });
    const store = await openKinds();
    expect(await resultOf(store, "file_import", { url: source.url })).toMatchObject({
      sha256: sha256(sample),
    });
    expect(source.requests[1]).toMatchObject({
      range: expect.stringMatching(/^bytes=[1-9]\d*-$/),
      ifRange: lastModified,
    });
  });

  it("starts over where the file changed meanwhile, and keeps nothing of the older one", async () => {
    const newer = randomBytes(200_000);
    let asked = 0;
    const source = await serveSource((request, response, account) => {
      asked += 1;
      if (asked === 1)
        sendFile(request, response, account, { bytes: sample, etag: '"v1"', breakAfter: 100_000 });
      else sendFile(request, response, account, { bytes: newer, etag: '"v2"' });
    });
    const store = await openKinds();
    const result = await resultOf<{ handle: string }>(store, "file_import", { url: `${source.url}/f.bin` });
    expect(result).toMatchObject({ size: 200_000, sha256: sha256(newer) });
    expect(source.requests).toHaveLength(2);
    expect(await filenames(store)).toEqual(["f.bin"]);
  });

  it("starts over where nothing tells that the rest belongs to what is here, unless a sha256 was given", async () => {
    const asked = { a: 0, b: 0 };
    const source = await serveSource((request, response, account) => {
      const name = request.url === "/a" ? "a" : "b";
      asked[name] += 1;
      sendFile(request, response, account, {
        bytes: sample,
        etag: "",
        ...(asked[name] === 1 && { breakAfter: 100_000 }),
      });
    });
    const store = await openKinds();
    expect(await resultOf(store, "file_import", { url: `${source.url}/a` })).toMatchObject({
      sha256: sha256(sample),
    });
    expect(
      await resultOf(store, "file_import", { url: `${source.url}/b`, sha256: sha256(sample) }),
    ).toMatchObject({ size: 300_000 });
    expect(source.requests.map(({ path, range }) => [path, range])).toEqual([
      ["/a", null],
      ["/a", null],
      ["/b", null],
      ["/b", expect.stringMatching(/^bytes=[1-9]\d*-$/)],
    ]);
  });

  it("waits and asks again where the source is busy, and gives up after some attempts in a row", async () => {
    let asked = 0;
    const source = await serveSource((request, response, account) => {
      asked += 1;
      if (request.url === "/never" || asked <= 2) response.writeHead(503).end();
      else sendFile(request, response, account, { bytes: sample });
    });
    const store = await openKinds();
    expect(await resultOf(store, "file_import", { url: source.url })).toMatchObject({
      sha256: sha256(sample),
    });
    asked = 0;
    const task = await runKind(store, "file_import", { url: `${source.url}/never` });
    expect(task.error).toMatchObject({
      code: "task_failed",
      message: expect.stringContaining("503 Service Unavailable"),
    });
    expect(asked).toBe(4);
  });

  it("fails at once where the source refuses, and says what it answered", async () => {
    const source = await serveSource((_request, response) => response.writeHead(404).end("no"));
    const store = await openKinds();
    const task = await runKind(store, "file_import", { url: source.url });
    expect(task.error).toMatchObject({ code: "task_failed", message: "The source answered 404 Not Found." });
    expect(source.requests).toHaveLength(1);
    expect(await filenames(store)).toEqual([]);
  });

  it.each([
    ["another size than announced by the source's Content-Length", { size: 299_999 }, false, "size_mismatch"],
    ["fewer bytes than announced", { size: 300_001 }, true, "size_mismatch"],
    ["more bytes than announced", { size: 299_999 }, true, "size_mismatch"],
    ["another sha256 than announced", { sha256: "0".repeat(64) }, false, "checksum_mismatch"],
  ])(
    "ends with an error and without a file where the source has %s",
    async (_what, announced, chunked, code) => {
      const source = await serveSource((request, response, account) =>
        sendFile(request, response, account, { bytes: sample, chunked }),
      );
      const store = await openKinds();
      const task = await runKind(store, "file_import", { url: source.url, ...announced });
      expect(task).toMatchObject({ status: "failed", error: { code, retryable: false } });
      expect(task.error?.recoveryHint).toContain("file_import");
      expect(await filenames(store)).toEqual([]);
    },
  );

  it.each([[true], [false]])("stops a file above the size limit (length untold: %s)", async (chunked) => {
    const endless = Buffer.alloc(3_000_000);
    const source = await serveSource((request, response, account) =>
      sendFile(request, response, account, { bytes: endless, chunked }),
    );
    const store = await openKinds({ limits: { maxFileBytes: 100_000 } });
    const task = await runKind(store, "file_import", { url: source.url });
    expect(task.error).toMatchObject({ code: "file_too_large" });
    expect(await filenames(store)).toEqual([]);
  });

  it("cancelled in the middle stops the fetch and leaves no upload", async () => {
    const source = await serveSource((request, response, account) =>
      sendFile(request, response, account, { bytes: sample, pieceBytes: 10_000, pauseMs: 50 }),
    );
    const store = await openKinds();
    const taskId = await startKind(store, "file_import", { url: source.url });
    await until(async () => ((await filenames(store)).length > 0 ? true : null));
    await store.tasks.cancel(me, taskId);
    await until(async () => ((await store.tasks.get(me, taskId)).status === "cancelled" ? true : null));
    expect(await filenames(store)).toEqual([]);
    expect(source.requests).toHaveLength(1);
  });

  it("gives up a connection that says nothing", async () => {
    const source = await serveSource((request, response, account) => {
      if (request.headers.range === undefined)
        sendFile(request, response, account, { bytes: sample, pieceBytes: 50_000, pauseMs: 30_000 });
      else sendFile(request, response, account, { bytes: sample });
    });
    const store = await openKinds({
      kinds: { imports: { idleMs: 300, patience: { attempts: 3, firstPauseMs: 5 } } },
    });
    expect(await resultOf(store, "file_import", { url: source.url })).toMatchObject({
      sha256: sha256(sample),
    });
    expect(source.requests[1]?.range).toBe("bytes=50000-");
  });
});
