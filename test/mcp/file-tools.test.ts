/** The tools that read, hand out and delete files, with both generations of clients over a real listener. */
import { describe, expect, test } from "vitest";
import type { TransferEngine } from "../../src/transfer/engine.ts";
import { bodyOf, contentOf, newFile, randomBytes, sha256 } from "../support/engine.ts";
import { clientKinds, connect, type Facts, facts, failure, type TestClient } from "../support/mcp-clients.ts";
import { startMcpServer, ticketOf } from "../support/mcp-server.ts";

async function store(
  engine: TransferEngine,
  bytes: Uint8Array,
  principal = "local",
  filename = "a.bin",
): Promise<string> {
  const file = newFile({ filename, sizeBytes: bytes.length, contentType: "application/octet-stream" });
  const { transfer } = await engine.createWith(principal, file, { offset: 0, body: bodyOf(bytes) });
  return transfer.handle;
}

async function readAll(client: TestClient, handle: string, args: Record<string, unknown>): Promise<Facts[]> {
  const windows: Facts[] = [];
  for (let offset = 0; ; ) {
    const window = await facts(client, "file_read", { handle, offset, ...args });
    windows.push(window);
    if (window.eof) return windows;
    offset = window.nextOffset;
  }
}

describe.each(clientKinds)("%s", (kind) => {
  test("lists, reads, downloads and deletes a file", async () => {
    const { url, engine } = await startMcpServer();
    const client = await connect(kind, url);
    const bytes = randomBytes(20_000);
    const handle = await store(engine, bytes, "local", "données 1.bin");

    const list = await facts(client, "file_list");
    expect(list.files).toEqual([
      {
        handle,
        status: "complete",
        offset: 20_000,
        size: 20_000,
        filename: "données 1.bin",
        sha256: sha256(bytes),
        contentType: "application/octet-stream",
        createdAt: expect.stringMatching(/Z$/),
      },
    ]);
    expect(list).not.toHaveProperty("nextCursor");

    const windows = await readAll(client, handle, { encoding: "base64" });
    expect(windows).toHaveLength(3);
    expect(Buffer.concat(windows.map(({ data }) => Buffer.from(data, "base64"))).equals(bytes)).toBe(true);

    const download = await client.call("file_download", { handle, expiresInSeconds: 60 });
    expect(download.facts).toMatchObject({ status: "complete", sha256: sha256(bytes), size: 20_000 });
    expect(download.facts.commands.curl).toContain(download.facts.url);
    expect(download.content[1]).toMatchObject({
      type: "resource_link",
      uri: download.facts.url,
      name: "données 1.bin",
      size: 20_000,
    });
    const lifeMs = Date.parse(String(download.facts.expiresAt)) - Date.now();
    expect(lifeMs).toBeGreaterThan(30_000);
    expect(lifeMs).toBeLessThanOrEqual(61_000);
    const file = await engine.openDownload(ticketOf(download.facts.url));
    expect((await contentOf(file.stream(0, 20_000))).equals(bytes)).toBe(true);

    expect(await facts(client, "file_delete", { handle })).toMatchObject({ handle, status: "deleted" });
    expect((await facts(client, "file_list")).files).toEqual([]);
    expect(await failure(client, "file_read", { handle })).toMatchObject({ code: "unknown_handle" });
  });

  test("sees only the files of its own principal, and answers to others' handles as to unknown ones", async () => {
    const { url, engine } = await startMcpServer({
      endpoint: { principalOf: (request) => request.headers.get("authorization") ?? "nobody" },
    });
    const alice = await connect(kind, url, { Authorization: "alice" });
    const theirs = await store(engine, Buffer.from("secret"), "bob");
    expect((await facts(alice, "file_list")).files).toEqual([]);
    const unknown = await failure(alice, "upload_status", { handle: `fh_${"a".repeat(32)}` });
    for (const name of ["upload_status", "upload_resume", "file_read", "file_download", "file_delete"]) {
      expect(await failure(alice, name, { handle: theirs }), name).toEqual(unknown);
      expect(await failure(alice, name, { handle: "no handle at all" }), name).toEqual(unknown);
    }
    expect(await failure(alice, "upload_write", { handle: theirs, offset: 0, data: "" })).toEqual(unknown);
    expect((await engine.status("bob", theirs)).status).toBe("complete");
  });
});

describe("file_read", () => {
  test("gives text in windows that never split a character, and says where to go on", async () => {
    const { url, engine } = await startMcpServer();
    const client = await connect(clientKinds[0], url);
    const text = "naïve 漢字 😀 ".repeat(900);
    const handle = await store(engine, Buffer.from(text));
    const windows = await readAll(client, handle, {});
    expect(windows.length).toBeGreaterThan(1);
    expect(windows.map(({ data }) => data).join("")).toBe(text);
    for (const { data, offset, nextOffset } of windows) {
      expect(data).not.toContain("\uFFFD");
      expect(nextOffset - offset).toBeLessThanOrEqual(8192);
    }
    expect(windows[0]?.nextStep).toContain(
      `file_read with handle "${handle}", offset ${windows[0]?.nextOffset}`,
    );
    expect(windows.at(-1)?.nextStep).toContain("end of the file");
    for (const length of [1, 2, 3, 4, 5]) {
      const window = await facts(client, "file_read", { handle, offset: 2, length });
      expect(text.startsWith(`na${window.data}`)).toBe(true);
    }
  });

  test("at the end gives nothing and eof, past the end is refused", async () => {
    const { url, engine } = await startMcpServer();
    const client = await connect(clientKinds[0], url);
    const handle = await store(engine, Buffer.from("hello"));
    for (const encoding of ["text", "base64"]) {
      const end = await facts(client, "file_read", { handle, offset: 5, encoding });
      expect(end).toMatchObject({ data: "", nextOffset: 5, eof: true, offset: 5 });
    }
    expect(await failure(client, "file_read", { handle, offset: 6 })).toMatchObject({
      code: "invalid_param",
      param: "offset",
    });
    const empty = await store(engine, Buffer.alloc(0));
    expect(await facts(client, "file_read", { handle: empty })).toMatchObject({ data: "", eof: true });
  });

  test("of bytes that are no text, and of a start inside a character, gives an error whose repair works", async () => {
    const { url, engine } = await startMcpServer();
    const client = await connect(clientKinds[0], url);
    const binary = await store(engine, Buffer.from([0x61, 0xff, 0xfe]));
    const notText = await failure(client, "file_read", { handle: binary });
    expect(notText).toMatchObject({ code: "invalid_param", param: "encoding", retryable: true });
    expect(notText.recoveryHint).toContain("base64");
    expect(await facts(client, "file_read", notText.repair?.arguments)).toMatchObject({
      data: "Yf/+",
      eof: true,
    });

    const text = await store(engine, Buffer.from("a😀b"));
    const inside = await failure(client, "file_read", { handle: text, offset: 3 });
    expect(inside).toMatchObject({ code: "invalid_param", param: "offset", retryable: true });
    expect(await facts(client, "file_read", inside.repair?.arguments)).toMatchObject({
      offset: 1,
      data: "😀b",
    });
  });

  test("of the worst bytes stays within 8,000 tokens of text", async () => {
    const { url, engine } = await startMcpServer();
    const client = await connect(clientKinds[0], url);
    for (const bytes of [Buffer.alloc(20_000, 0x01), Buffer.alloc(20_000, '"'), randomBytes(20_000)]) {
      const handle = await store(engine, bytes);
      const encoding = bytes[0] === bytes[1] ? "text" : "base64";
      const { content } = await client.call("file_read", { handle, encoding });
      expect(String(content[0]?.text).length).toBeLessThan(17_000);
    }
  });
});

describe("file_list", () => {
  test("gives pages whose cursors stay valid while files come and go", async () => {
    const { url, engine } = await startMcpServer();
    const client = await connect(clientKinds[0], url);
    const made: string[] = [];
    for (let n = 0; n < 7; n += 1) made.push(await store(engine, Buffer.from([n])));
    // Oldest first; those of one millisecond have no order but that of their handles.
    const all: Facts[] = (await facts(client, "file_list", { limit: 30 })).files;
    const handles = all.map((row) => String(row.handle));
    expect([...handles].sort()).toEqual([...made].sort());
    const times = all.map((row) => String(row.createdAt));
    expect(times).toEqual([...times].sort());
    const first = await facts(client, "file_list", { limit: 3 });
    expect(first.files.map((row: Facts) => row.handle)).toEqual(handles.slice(0, 3));
    expect(first.nextStep).toContain(first.nextCursor);
    await facts(client, "file_delete", { handle: handles[2] });
    await facts(client, "file_delete", { handle: handles[3] });
    const second = await facts(client, "file_list", { limit: 30, cursor: first.nextCursor });
    expect(second.files.map((row: Facts) => row.handle)).toEqual(handles.slice(4));
    expect(second).not.toHaveProperty("nextCursor");
  });

  test("narrows by status", async () => {
    const { url, engine } = await startMcpServer();
    const client = await connect(clientKinds[0], url);
    const complete = await store(engine, Buffer.from("x"));
    const { handle } = await facts(client, "upload_create", { filename: "b", size: 9 });
    const of = async (status: string) =>
      (await facts(client, "file_list", { status })).files.map((row: Facts) => row.handle);
    expect(await of("complete")).toEqual([complete]);
    expect(await of("receiving")).toEqual([handle]);
    expect(await of("mismatch")).toEqual([]);
  });

  test("of 30 files with the longest names stays within 8,000 tokens and keeps their extensions", async () => {
    const { url, engine } = await startMcpServer();
    const client = await connect(clientKinds[0], url);
    for (let made = 0; made < 31; made += 1)
      await store(engine, Buffer.from("x"), "local", `${"n".repeat(240)}${made}.pdf`);
    const { facts: list, content } = await client.call("file_list");
    expect(list.files).toHaveLength(30);
    expect(list.files[0].filename).toMatch(/^n+…n+0\.pdf$/);
    expect(String(content[0]?.text).length).toBeLessThan(17_000);
  });
});
