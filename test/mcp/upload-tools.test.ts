/** The tools that bring files, with both generations of clients over a real listener. */
import { describe, expect, test } from "vitest";
import { bodyOf, openBody, randomBytes, sha256 } from "../support/engine.ts";
import { clientKinds, connect, facts, failure } from "../support/mcp-clients.ts";
import { startMcpServer, ticketOf } from "../support/mcp-server.ts";
import { waitUntil } from "../support/wait-until.ts";

describe.each(clientKinds)("%s", (kind) => {
  test("creates an upload, uses its URL, waits for its end and knows the digest", async () => {
    const { url, engine } = await startMcpServer();
    const client = await connect(kind, url);
    const bytes = randomBytes(100_000);
    const created = await facts(client, "upload_create", {
      filename: "a b.bin",
      size: bytes.length,
      sha256: sha256(bytes).toUpperCase(),
    });
    expect(created).toMatchObject({ status: "receiving", offset: 0, size: 100_000, filename: "a b.bin" });
    expect(created.expiresAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(created.upload).toEqual({ tus: created.upload.put, put: created.upload.put });
    expect(created.commands.curl).toBe(`curl -f -T 'a b.bin' ${created.upload.put}`);
    expect(created.allowHost).toBe(new URL(url).host);
    expect(created.inline).toEqual({ tool: "upload_write", maxChunkBytes: 262_144, maxFileBytes: 4_194_304 });
    expect(created.nextStep).toContain("commands.curl");
    expect(created.nextStep).toContain(`upload_status with handle "${created.handle}" and waitMs 40000`);

    const waiting = facts(client, "upload_status", { handle: created.handle, waitMs: 40_000 });
    await engine.append(ticketOf(created.upload.put), { offset: 0, body: bodyOf(bytes) });
    expect(await waiting).toMatchObject({
      status: "complete",
      offset: 100_000,
      sha256: sha256(bytes),
      filename: "a b.bin",
    });
  });

  test("resumes from the offset reached, with a fresh ticket and the offset in the curl line", async () => {
    const { url, engine } = await startMcpServer();
    const client = await connect(kind, url);
    const created = await facts(client, "upload_create", { filename: "a.bin", size: 10 });
    await engine.append(ticketOf(created.upload.put), { offset: 0, body: bodyOf(Buffer.from("hello")) });
    const resumed = await facts(client, "upload_resume", { handle: created.handle });
    expect(resumed).toMatchObject({ handle: created.handle, status: "receiving", offset: 5, size: 10 });
    expect(resumed.upload.put).not.toBe(created.upload.put);
    expect(resumed.commands.curl).toBe(`curl -f -C 5 -T a.bin ${resumed.upload.put}`);
    await engine.append(ticketOf(resumed.upload.put), { offset: 5, body: bodyOf(Buffer.from("world")) });
    expect(await facts(client, "upload_status", { handle: created.handle })).toMatchObject({
      status: "complete",
    });
  });

  test("writes a small file in chunks and gets the digest of each and of the whole", async () => {
    const { url, engine } = await startMcpServer({ limits: { inlineChunkBytes: 1000 } });
    const client = await connect(kind, url);
    const bytes = randomBytes(2500);
    const { handle } = await facts(client, "upload_create", { filename: "a.bin", size: bytes.length });
    for (let offset = 0; offset < bytes.length; offset += 1000) {
      const chunk = bytes.subarray(offset, offset + 1000);
      const written = await facts(client, "upload_write", {
        handle,
        offset,
        data: chunk.toString("base64"),
        sha256: sha256(chunk),
      });
      expect(written).toMatchObject({
        handle,
        offset: offset + chunk.length,
        size: 2500,
        chunkSha256: sha256(chunk),
      });
      if (written.offset < 2500)
        expect(written.nextStep).toContain(
          `upload_write with handle "${handle}" and offset ${written.offset}`,
        );
      else expect(written).toMatchObject({ status: "complete", sha256: sha256(bytes) });
    }
    const stored = await engine.openOwn("local", handle);
    expect(stored.transfer.sha256).toBe(sha256(bytes));
  });

  test("writes a file of unknown size and ends it with final", async () => {
    const { url } = await startMcpServer();
    const client = await connect(kind, url);
    const created = await facts(client, "upload_create", { filename: "a.txt" });
    expect(created).not.toHaveProperty("size");
    expect(created.upload.deferredLength).toBe(true);
    expect(created.nextStep).toContain("deferred length");
    const { handle } = created;
    const first = await facts(client, "upload_write", { handle, offset: 0, data: "aGVsbG8=" });
    expect(first).toMatchObject({ status: "receiving", offset: 5 });
    expect(first.nextStep).toContain("final");
    const last = await facts(client, "upload_write", { handle, offset: 5, data: "", final: true });
    expect(last).toMatchObject({
      status: "complete",
      offset: 5,
      size: 5,
      sha256: sha256(Buffer.from("hello")),
    });
  });
});

describe("upload_create", () => {
  test("with the same key and arguments gives the same handle and a fresh URL", async () => {
    const { url } = await startMcpServer();
    const client = await connect(clientKinds[0], url);
    const args = { filename: "a.bin", size: 5, idempotencyKey: "k1" };
    const first = await facts(client, "upload_create", args);
    const second = await facts(client, "upload_create", args);
    expect(second.handle).toBe(first.handle);
    expect(second.upload.put).not.toBe(first.upload.put);
  });

  test("keeps the name of a file and drops its folders, of Unix and of Windows", async () => {
    const { url } = await startMcpServer();
    const client = await connect(clientKinds[0], url);
    for (const filename of [
      "/home/me/report.pdf",
      "C:\\Users\\me\\report.pdf",
      "./report.pdf",
      "report.pdf",
    ]) {
      expect(await facts(client, "upload_create", { filename })).toMatchObject({ filename: "report.pdf" });
    }
  });

  test("of an empty file is complete at once and says so", async () => {
    const { url } = await startMcpServer();
    const client = await connect(clientKinds[0], url);
    const created = await facts(client, "upload_create", { filename: "empty", size: 0 });
    expect(created).toMatchObject({
      status: "complete",
      offset: 0,
      size: 0,
      sha256: sha256(Buffer.alloc(0)),
    });
    expect(created.nextStep).toContain("file_download");
  });

  test("offers upload_write only for files that it would take", async () => {
    const { url } = await startMcpServer();
    const client = await connect(clientKinds[0], url);
    expect((await facts(client, "upload_create", { filename: "s", size: 4_194_304 })).nextStep).toContain(
      "upload_write",
    );
    expect((await facts(client, "upload_create", { filename: "l", size: 4_194_305 })).nextStep).not.toContain(
      "upload_write",
    );
  });

  test("takes null for an absent argument, and names what it does not know", async () => {
    const { url } = await startMcpServer();
    const client = await connect(clientKinds[1], url);
    const created = await facts(client, "upload_create", {
      filename: "a",
      size: null,
      sha265: "x",
      idempotencyKey: null,
    });
    expect(created).not.toHaveProperty("size");
    expect(created.ignoredArguments).toEqual(["sha265"]);
    expect(Object.keys(created).at(-1)).toBe("nextStep");
  });
});

describe("upload_write", () => {
  test("of a chunk whose answer was lost tells the true offset and stores nothing twice", async () => {
    const { url } = await startMcpServer();
    const client = await connect(clientKinds[0], url);
    const { handle } = await facts(client, "upload_create", { filename: "a", size: 10 });
    const chunk = { handle, offset: 0, data: "aGVsbG8=" };
    await facts(client, "upload_write", chunk);
    expect(await failure(client, "upload_write", chunk)).toMatchObject({
      code: "offset_mismatch",
      partial: { cursor: 5 },
      repair: { tool: "upload_write", arguments: { handle, offset: 5 } },
    });
  });

  test("of the last chunk for a second time says that nothing is left to send", async () => {
    const { url } = await startMcpServer();
    const client = await connect(clientKinds[0], url);
    const { handle } = await facts(client, "upload_create", { filename: "a", size: 5 });
    const chunk = { handle, offset: 0, data: "aGVsbG8=" };
    await facts(client, "upload_write", chunk);
    const error = await failure(client, "upload_write", chunk);
    expect(error).toMatchObject({ code: "offset_mismatch", partial: { cursor: 5 } });
    expect(error.recoveryHint).toContain("nothing is left to send");
    const { tool, arguments: args } = error.repair ?? { tool: "", arguments: {} };
    expect(await facts(client, tool, args)).toMatchObject({
      status: "complete",
      sha256: sha256(Buffer.from("hello")),
    });
  });

  test("with a wrong sha256 of the chunk stores nothing and tells the sha256 that arrived", async () => {
    const { url } = await startMcpServer();
    const client = await connect(clientKinds[0], url);
    const { handle } = await facts(client, "upload_create", { filename: "a", size: 10 });
    const error = await failure(client, "upload_write", {
      handle,
      offset: 0,
      data: "aGVsbG8=",
      sha256: "0".repeat(64),
    });
    expect(error).toMatchObject({
      code: "checksum_mismatch",
      partial: { cursor: 0 },
      chunkSha256: sha256(Buffer.from("hello")),
    });
    expect(await facts(client, "upload_status", { handle })).toMatchObject({
      status: "receiving",
      offset: 0,
    });
  });

  test("at 0 after a mismatch starts the file over under its handle", async () => {
    const { url } = await startMcpServer();
    const client = await connect(clientKinds[0], url);
    const right = Buffer.from("right");
    const { handle } = await facts(client, "upload_create", {
      filename: "a",
      size: 5,
      sha256: sha256(right),
    });
    const wrong = await failure(client, "upload_write", {
      handle,
      offset: 0,
      data: Buffer.from("wrong").toString("base64"),
    });
    expect(wrong).toMatchObject({
      code: "checksum_mismatch",
      repair: { tool: "upload_resume", arguments: { handle } },
    });
    expect(await facts(client, "upload_status", { handle })).toMatchObject({ status: "mismatch", offset: 5 });
    const again = await facts(client, "upload_write", { handle, offset: 0, data: right.toString("base64") });
    expect(again).toMatchObject({ status: "complete", offset: 5, sha256: sha256(right) });
  });

  test("with a wrong sha256 of the chunk does not throw away a mismatched file", async () => {
    const { url } = await startMcpServer();
    const client = await connect(clientKinds[0], url);
    const { handle } = await facts(client, "upload_create", {
      filename: "a",
      size: 5,
      sha256: "0".repeat(64),
    });
    await failure(client, "upload_write", { handle, offset: 0, data: "aGVsbG8=" });
    const args = { handle, offset: 0, data: "aGVsbG8=", sha256: "1".repeat(64) };
    expect(await failure(client, "upload_write", args)).toMatchObject({
      code: "checksum_mismatch",
      partial: { cursor: 0 },
    });
    expect(await facts(client, "upload_status", { handle })).toMatchObject({ status: "mismatch", offset: 5 });
  });

  test("final before the size announced is reached is refused, and the chunk is taken without it", async () => {
    const { url } = await startMcpServer();
    const client = await connect(clientKinds[0], url);
    const { handle } = await facts(client, "upload_create", { filename: "a", size: 10 });
    const error = await failure(client, "upload_write", { handle, offset: 0, data: "aGVsbG8=", final: true });
    expect(error).toMatchObject({
      code: "size_mismatch",
      partial: { cursor: 0 },
      repair: { arguments: { handle, offset: 0 } },
    });
    expect(error.recoveryHint).toContain("leave out final");
    for (const offset of [0, 5]) await facts(client, "upload_write", { handle, offset, data: "aGVsbG8=" });
    expect(await facts(client, "upload_status", { handle })).toMatchObject({
      status: "complete",
      offset: 10,
    });
  });
});

describe("upload_status", () => {
  test("does not disturb a writer, tells its speed, and comes back with a change of status only", async () => {
    const { url, engine } = await startMcpServer();
    const client = await connect(clientKinds[0], url);
    const size = 200 << 20;
    const { handle, upload } = await facts(client, "upload_create", { filename: "a", size });
    const body = openBody(size);
    const appending = engine.append(ticketOf(upload.put), { offset: 0, body });
    const piece = Buffer.alloc(1 << 20);
    for (let sent = 0; sent < 70; sent += 1) body.feed(piece);
    await waitUntil(async () => (await facts(client, "upload_status", { handle })).bytesPerSecond > 0);
    const running = await facts(client, "upload_status", { handle, waitMs: 300 });
    expect(running).toMatchObject({ status: "receiving", size });
    expect(running.secondsLeft).toBeGreaterThan(0);
    expect(running.nextStep).toContain("Bytes are arriving");
    const waiting = facts(client, "upload_status", { handle, waitMs: 40_000 });
    for (let sent = 70; sent < 200; sent += 1) body.feed(piece);
    body.stream.push(null);
    await appending;
    expect((await waiting).status).toMatch(/verifying|complete/);
  });

  test("does not wait where only the caller can change the status", async () => {
    const { url } = await startMcpServer();
    const client = await connect(clientKinds[0], url);
    const { handle } = await facts(client, "upload_create", {
      filename: "a",
      size: 5,
      sha256: "0".repeat(64),
    });
    await failure(client, "upload_write", { handle, offset: 0, data: "aGVsbG8=" });
    const start = performance.now();
    expect(await facts(client, "upload_status", { handle, waitMs: 40_000 })).toMatchObject({
      status: "mismatch",
    });
    expect(performance.now() - start).toBeLessThan(10_000);
  });

  test("tells the digest of the bytes received so far when asked", async () => {
    const { url } = await startMcpServer();
    const client = await connect(clientKinds[0], url);
    const { handle } = await facts(client, "upload_create", { filename: "a", size: 10 });
    const nothing = await facts(client, "upload_status", { handle, prefixDigest: true });
    expect(nothing.prefix).toEqual({ bytes: 0, sha256: sha256(Buffer.alloc(0)) });
    await facts(client, "upload_write", { handle, offset: 0, data: "aGVsbG8=" });
    const status = await facts(client, "upload_status", { handle, prefixDigest: true });
    expect(status.prefix).toEqual({ bytes: 5, sha256: sha256(Buffer.from("hello")) });
    expect(await facts(client, "upload_status", { handle, prefixDigest: false })).not.toHaveProperty(
      "prefix",
    );
  });
});
