import { Agent, get, IncomingMessage, type Server, ServerResponse } from "node:http";
import { connect, Socket } from "node:net";
import path from "node:path";
import { parse as parseDisposition } from "content-disposition";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { TransferError } from "../../src/errors.ts";
import type { OpenFile, TransferEngine } from "../../src/transfer/engine.ts";
import { cutStalled } from "../../src/tus/answer-body.ts";
import { type FilesServer, RawConnection, startFilesServer } from "../support/http-server.ts";
import { openBelow, tellsOpenFiles } from "../support/open-files.ts";
import {
  base64,
  created,
  fieldsOf,
  head,
  patch,
  problemOf,
  sha256,
  someBytes,
  stored,
} from "../support/tus-requests.ts";
import { waitUntil } from "../support/wait-until.ts";

let server: FilesServer;
beforeAll(async () => {
  server = await startFilesServer();
});
afterAll(() => server.close());

const metadata = (filename: string, type?: string): Record<string, string> => ({
  "Upload-Metadata": `filename ${base64(filename)}${type === undefined ? "" : `,filetype ${base64(type)}`}`,
});

async function download(bytes: Buffer<ArrayBuffer>, fields: Record<string, string> = {}): Promise<string> {
  const handle = await stored(server.url, bytes, fields);
  const { ticket, transfer } = await server.engine.mintDownload("local", handle, null);
  return server.links.download(ticket, transfer.filename);
}

const ask = (url: string, headers: Record<string, string> = {}, method = "GET"): Promise<Response> =>
  fetch(url, { method, headers });
const connectionsOf = (of: Server): Promise<number> =>
  new Promise((resolve, reject) =>
    of.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
const bytesOf = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer());

/** The engine with each file that is opened for a download changed. */
const withFiles =
  (change: (file: OpenFile) => OpenFile) =>
  (engine: TransferEngine): TransferEngine =>
    new Proxy(engine, {
      get(target, name) {
        if (name === "openDownload")
          return async (ticket: string) => change(await engine.openDownload(ticket));
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });

describe("GET of a download URL", () => {
  test("gives the whole file with everything known about it", async () => {
    const bytes = someBytes(2_000_000);
    const url = await download(bytes, metadata("plan.pdf", "application/pdf"));
    const response = await ask(url);
    expect(response.status).toBe(200);
    expect(fieldsOf(response)).toMatchObject({
      "content-length": "2000000",
      "content-type": "application/pdf",
      "content-disposition": "attachment; filename=plan.pdf",
      etag: `"${sha256(bytes)}"`,
      "repr-digest": `sha-256=:${Buffer.from(sha256(bytes), "hex").toString("base64")}:`,
      "accept-ranges": "bytes",
      "x-content-type-options": "nosniff",
      "content-security-policy": "sandbox; default-src 'none'",
      "cross-origin-resource-policy": "cross-origin",
      "cache-control": "private, no-cache, no-transform",
      "last-modified": expect.stringMatching(/ GMT$/),
      "longshore-handle": expect.stringMatching(/^fh_/),
      "longshore-status": "complete",
      "access-control-allow-origin": "*",
    });
    expect((await bytesOf(response)).equals(bytes)).toBe(true);
  });

  test("takes any name in the URL, or none: it is decoration", async () => {
    const url = await download(Buffer.from("abc"), metadata("real.txt"));
    const base = url.slice(0, url.lastIndexOf("/"));
    for (const other of [`${base}/else.html?x=y`, `${base}/%E2%82%AC`, `${base}/%zz`, base]) {
      const response = await ask(other);
      expect([response.status, await response.text()]).toEqual([200, "abc"]);
      expect(response.headers.get("content-disposition")).toBe("attachment; filename=real.txt");
    }
  });

  test.each([
    ["text/html", "<script>alert(1)</script>"],
    ["image/svg+xml", "<svg onload='alert(1)'/>"],
    ["text/javascript", "alert(1)"],
    ["application/xhtml+xml", "<html/>"],
  ])("never lets %s be active content of this origin", async (type, text) => {
    const response = await ask(await download(Buffer.from(text), metadata("x", type)));
    expect(fieldsOf(response)).toMatchObject({
      "content-type": type,
      "content-disposition": expect.stringMatching(/^attachment/),
      "x-content-type-options": "nosniff",
      "content-security-policy": expect.stringMatching(/^sandbox;/),
    });
  });

  test.each(["größe €.txt", "文件🚢", 'a"b\\c;d.txt', "../../etc/passwd", "x".repeat(1024), "line\nbreak"])(
    "names %j as RFC 6266 and RFC 8187 want it",
    async (filename) => {
      const response = await ask(await download(Buffer.from("abc"), metadata(filename)));
      expect(response.status).toBe(200);
      const shown = parseDisposition(response.headers.get("content-disposition") ?? "").parameters.filename;
      expect(shown).toBe(filename.replaceAll(/[/\\\n]/g, "_"));
    },
  );

  test("of an empty file gives nothing, whole", async () => {
    const response = await ask(await download(Buffer.from("")));
    expect([response.status, response.headers.get("content-length"), await response.text()]).toEqual([
      200,
      "0",
      "",
    ]);
  });

  test("that is HEAD gives the same header and no body", async () => {
    const url = await download(someBytes(1000), metadata("a.txt"));
    const whole = await ask(url);
    await whole.arrayBuffer();
    const looked = await ask(url, { Range: "bytes=0-9" }, "HEAD");
    expect(looked.status).toBe(200);
    const unlike = new Set(["date", "x-request-id", "connection", "keep-alive"]);
    const comparable = (response: Response) => [...response.headers].filter(([name]) => !unlike.has(name));
    expect(comparable(looked)).toEqual(comparable(whole));
  });

  test("of nothing that is known answers 404; with an upload's secret too", async () => {
    const upload = await created(server.url, { "Upload-Length": "3" });
    await patch(upload, 0, "abc");
    for (const ticket of ["x", "A".repeat(40), upload.split("/").at(-1)]) {
      const response = await ask(`${server.url}/d/${ticket}/a.txt`);
      expect(response.status).toBe(404);
      expect(await problemOf(response)).toMatchObject({ code: "unknown_handle" });
    }
  });

  test("past its time answers 410, and names the tool that gives a fresh one", async () => {
    const handle = await stored(server.url, Buffer.from("abc"));
    const { ticket } = await server.engine.mintDownload("local", handle, -1000);
    const response = await ask(server.links.download(ticket, null));
    expect(response.status).toBe(410);
    expect(await problemOf(response)).toMatchObject({
      code: "transfer_expired",
      recoveryHint: "Ask for a fresh URL with file_download.",
      repair: { tool: "file_download", arguments: { handle } },
    });
  });

  test("that has begun is never cut: the life of the URL is over for new requests alone", async () => {
    const bytes = someBytes(32 << 20);
    const handle = await stored(server.url, bytes);
    const { ticket } = await server.engine.mintDownload("local", handle, 1500);
    const url = server.links.download(ticket, null);
    const begun = await ask(url);
    expect(begun.status).toBe(200);
    await waitUntil(async () => (await ask(url, {}, "HEAD")).status === 410);
    // Far more than the sockets hold: most of it is read and sent only now.
    expect(sha256(await bytesOf(begun))).toBe(sha256(bytes));
    expect((await ask(url, { Range: "bytes=0-0" })).status).toBe(410);
  });

  test("of a file deleted meanwhile answers 404", async () => {
    const handle = await stored(server.url, Buffer.from("abc"));
    const { ticket } = await server.engine.mintDownload("local", handle, null);
    await server.engine.removeOwn("local", handle);
    expect((await ask(server.links.download(ticket, null))).status).toBe(404);
  });
});

test("every answer on the URL of a file that is known tells its handle, status and digest, refusals and OPTIONS included", async () => {
  const handle = await stored(server.url, Buffer.from("abc"));
  const { ticket } = await server.engine.mintDownload("local", handle, null);
  const url = server.links.download(ticket, null);
  for (const [method, fields, status] of [
    ["GET", { Range: "bytes=5-9" }, 416],
    ["GET", { "If-Match": '"other"' }, 412],
    ["GET", { "If-None-Match": "*" }, 304],
    ["PUT", {}, 405],
    ["DELETE", {}, 405],
    ["OPTIONS", {}, 204],
  ] as const) {
    const response = await ask(url, fields, method);
    await response.arrayBuffer();
    expect([method, response.status]).toEqual([method, status]);
    expect(fieldsOf(response)).toMatchObject({
      "longshore-handle": handle,
      "longshore-status": "complete",
      "repr-digest": expect.stringMatching(/^sha-256=:/),
    });
    expect(response.headers.get("upload-offset")).toBeNull();
  }
  const unknown = await ask(server.links.download("A".repeat(40), null), {}, "OPTIONS");
  expect([unknown.status, unknown.headers.get("longshore-handle")]).toEqual([204, null]);
});

describe("Range", () => {
  const bytes = someBytes(10_000);
  let url: string;
  beforeAll(async () => {
    url = await download(bytes, metadata("r.bin", "application/x-r"));
  });

  test.each([
    ["bytes=0-0", 0, 1],
    ["bytes=100-199", 100, 200],
    ["bytes=9990-", 9990, 10_000],
    ["bytes=9990-99999", 9990, 10_000],
    ["bytes=-5", 9995, 10_000],
    ["bytes=-99999", 0, 10_000],
    ["bytes=0-9,5-20", 0, 21],
  ])("%s answers 206 with those bytes", async (text, start, end) => {
    const response = await ask(url, { Range: text });
    expect(response.status).toBe(206);
    expect(fieldsOf(response)).toMatchObject({
      "content-range": `bytes ${start}-${end - 1}/10000`,
      "content-length": String(end - start),
      "content-type": "application/x-r",
      etag: `"${sha256(bytes)}"`,
      "repr-digest": expect.stringMatching(/^sha-256=:/),
    });
    expect((await bytesOf(response)).equals(bytes.subarray(start, end))).toBe(true);
  });

  test("of several pieces answers 206 multipart/byteranges of the length it says", async () => {
    const response = await ask(url, { Range: "bytes=0-9, 5000-5004, -3" });
    expect(response.status).toBe(206);
    expect(response.headers.get("content-range")).toBeNull();
    const boundary = /^multipart\/byteranges; boundary=([0-9a-f]+)$/.exec(
      response.headers.get("content-type") ?? "",
    )?.[1];
    const body = await bytesOf(response);
    expect(response.headers.get("content-length")).toBe(String(body.byteLength));
    const part = (start: number, end: number) =>
      `\r\n--${boundary}\r\nContent-Type: application/x-r\r\nContent-Range: bytes ${start}-${end - 1}/10000\r\n\r\n${bytes.toString("latin1", start, end)}`;
    expect(body.toString("latin1")).toBe(
      `${part(0, 10)}${part(5000, 5005)}${part(9997, 10_000)}\r\n--${boundary}--\r\n`,
    );
  });

  test.each(["bytes=10000-", "bytes=20000-30000", "bytes=-0"])(
    "%s answers 416 with the size",
    async (text) => {
      const response = await ask(url, { Range: text });
      expect(response.status).toBe(416);
      expect(response.headers.get("content-range")).toBe("bytes */10000");
      expect(await problemOf(response)).toMatchObject({ code: "range_not_satisfiable" });
    },
  );

  test.each([
    "bytes=9-3",
    "bytes=x",
    "lines=0-9",
    "bytes=",
    `bytes=${Array.from({ length: 33 }, (_, i) => `${i * 300}-${i * 300}`).join(",")}`,
  ])("%s counts for nothing: 200 with all", async (text) => {
    const response = await ask(url, { Range: text });
    expect([response.status, (await bytesOf(response)).byteLength]).toEqual([200, 10_000]);
  });

  test("with If-Range of this file counts, of another does not", async () => {
    const { etag = "", "last-modified": date = "" } = fieldsOf(await ask(url, {}, "HEAD"));
    for (const [validator, status] of [
      [etag, 206],
      [date, 206],
      ['"other"', 200],
      [`W/${etag}`, 200],
      ["Thu, 01 Jan 1970 00:00:00 GMT", 200],
    ] as const) {
      const response = await ask(url, { Range: "bytes=0-9", "If-Range": validator });
      await response.arrayBuffer();
      expect([validator, response.status]).toEqual([validator, status]);
    }
  });

  test("of an empty file cannot be had: 416", async () => {
    const response = await ask(await download(Buffer.from("")), { Range: "bytes=0-" });
    expect([response.status, response.headers.get("content-range")]).toEqual([416, "bytes */0"]);
  });
});

describe("conditions", () => {
  test("If-None-Match and If-Modified-Since answer 304 without a body but with the validators", async () => {
    const url = await download(Buffer.from("abc"));
    const { etag = "", "last-modified": date = "" } = fieldsOf(await ask(url, {}, "HEAD"));
    for (const condition of [
      { "If-None-Match": etag },
      { "If-None-Match": `"x", W/${etag}` },
      { "If-Modified-Since": date },
    ] as Record<string, string>[]) {
      for (const method of ["GET", "HEAD"]) {
        const response = await ask(url, condition, method);
        expect(response.status).toBe(304);
        expect(await response.text()).toBe("");
        expect(fieldsOf(response)).toMatchObject({ etag, "cache-control": expect.any(String) });
        expect(response.headers.get("content-length")).toBeNull();
      }
    }
  });

  test("If-Match and If-Unmodified-Since that fail answer 412, and not in the words of tus", async () => {
    const url = await download(Buffer.from("abc"));
    for (const condition of [
      { "If-Match": '"other"' },
      { "If-Unmodified-Since": "Thu, 01 Jan 1970 00:00:00 GMT" },
    ] as Record<string, string>[]) {
      const response = await ask(url, condition);
      expect(response.status).toBe(412);
      expect(response.headers.get("tus-version")).toBeNull();
      expect(await problemOf(response)).toMatchObject({ code: "precondition_failed" });
    }
  });
});

describe("the stream of a download", () => {
  const big = someBytes(24 << 20);

  test("waits for a slow reader, holds nothing else up, and ends when the reader leaves", async () => {
    const url = new URL(await download(big));
    const agent = new Agent({ keepAlive: false });
    const slow = await new Promise<IncomingMessage>((resolve, reject) => {
      get(url, { agent }, resolve).on("error", reject);
    });
    slow.once("readable", () => {});
    const before = process.memoryUsage().arrayBuffers;
    for (let round = 0; round < 3; round += 1) {
      expect((await bytesOf(await ask(url.href))).byteLength).toBe(big.byteLength);
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(160 << 20);
    slow.destroy();
    // The file stays deletable and readable; nothing of the broken request is in the log.
    expect((await ask(url.href, { Range: "bytes=-1" })).status).toBe(206);
    expect(server.logged.filter(({ level }) => level !== "info")).toEqual([]);
  });

  test.each([
    ["short", 262_144],
    ["long", 1_000_000],
  ])(
    "waits for its turn before it holds bytes, and is never begun where the reader has gone (%s)",
    async (_length, bytes) => {
      const asked = { for: 0, read: 0 };
      const patient = await startFilesServer({
        wrapEngine: withFiles((file) => {
          asked.for += 1;
          const counted =
            <Result>(read: (start: number, end: number) => Result) =>
            (start: number, end: number) => {
              asked.read += 1;
              return read(start, end);
            };
          return { ...file, bytes: counted(file.bytes), stream: counted(file.stream) };
        }),
      });
      try {
        const handle = await stored(patient.url, big);
        const { ticket } = await patient.engine.mintDownload("local", handle, null);
        const request = `GET /d/${ticket} HTTP/1.1\r\nHost: x\r\nRange: bytes=0-${bytes - 1}\r\n\r\n`;
        const count = 100;
        for (const readsOn of [true, false]) {
          asked.for = 0;
          asked.read = 0;
          const socket = connect(patient.port, "127.0.0.1").pause();
          socket.write(request.repeat(count));
          await waitUntil(() => asked.for === count);
          // What the buffers of the two sockets hold is some megabytes.
          expect(asked.read).toBeLessThan(count / 2);
          if (readsOn) {
            let received = 0;
            socket.on("data", (piece) => {
              received += piece.byteLength;
            });
            socket.resume();
            await waitUntil(() => received > count * bytes);
            expect(asked.read).toBe(count);
          }
          socket.destroy();
        }
        await waitUntil(async () => (await connectionsOf(patient.server)) === 0);
        expect(asked.read).toBeLessThan(count / 2);
        if (tellsOpenFiles) await waitUntil(() => openBelow(path.join(patient.dataDir, "blobs")) === 0);
        expect(patient.logged.filter(({ level }) => level !== "info")).toEqual([]);
      } finally {
        await patient.close();
      }
    },
  );

  test("watches its reader until the connection ends, and cuts one that takes nothing for ten minutes", () => {
    vi.useFakeTimers();
    try {
      const answerOn = (socket: Socket | null) => {
        const outgoing = new ServerResponse(new IncomingMessage(socket ?? new Socket()));
        if (socket !== null) outgoing.assignSocket(socket);
        return outgoing;
      };
      const socket = new Socket();
      const stalled = answerOn(socket);
      cutStalled(stalled);
      expect(vi.getTimerCount()).toBe(1);
      const queued = answerOn(null);
      cutStalled(queued);
      vi.advanceTimersByTime(11 * 60_000);
      expect([stalled.destroyed, socket.destroyed, queued.destroyed]).toEqual([true, true, false]);
      queued.emit("close");
      stalled.emit("close");
      expect(vi.getTimerCount()).toBe(0);
      // The reader may have gone while the bytes were being read.
      Object.defineProperty(stalled, "closed", { value: true });
      cutStalled(stalled);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  test("that is short and cannot be read is an error with its status, and nothing of the file", async () => {
    const faulty = await startFilesServer({
      wrapEngine: withFiles((file) => ({
        ...file,
        bytes: () => Promise.reject(new TransferError("storage_unavailable", "The disk went away.")),
      })),
    });
    try {
      const handle = await stored(faulty.url, big);
      const { ticket } = await faulty.engine.mintDownload("local", handle, null);
      const response = await ask(faulty.links.download(ticket, null), { Range: "bytes=5-9" });
      expect(response.status).toBe(503);
      expect(response.headers.get("content-range")).toBeNull();
      expect(await problemOf(response)).toMatchObject({ code: "storage_unavailable", retryable: true });
    } finally {
      await faulty.close();
    }
  });

  test("that breaks inside cuts the connection, so that nobody takes the part for the whole", async () => {
    const faulty = await startFilesServer({
      wrapEngine: withFiles((file) => ({
        ...file,
        stream(start, end) {
          const stream = file.stream(start, end);
          let seen = 0;
          stream.on("data", (piece: Buffer) => {
            seen += piece.byteLength;
            if (seen > 4 << 20) stream.destroy(new Error("the disk went away"));
          });
          stream.pause();
          return stream;
        },
      })),
    });
    try {
      const handle = await stored(faulty.url, big);
      const { ticket } = await faulty.engine.mintDownload("local", handle, null);
      const response = await ask(faulty.links.download(ticket, null));
      expect(response.status).toBe(200);
      await expect(response.arrayBuffer()).rejects.toThrow();
      expect(faulty.logged).toContainEqual(
        expect.objectContaining({
          event: "request_failed",
          error: expect.objectContaining({ message: "the disk went away" }),
        }),
      );
    } finally {
      await faulty.close();
    }
  });

  test("of a file whose bytes are gone answers 503 before anything is sent", async () => {
    const { rm } = await import("node:fs/promises");
    const lost = await startFilesServer();
    try {
      const handle = await stored(lost.url, big);
      const { ticket } = await lost.engine.mintDownload("local", handle, null);
      await rm(`${lost.dataDir}/blobs`, { recursive: true });
      const response = await ask(lost.links.download(ticket, null));
      expect(response.status).toBe(503);
      expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(await problemOf(response)).toMatchObject({ code: "storage_unavailable" });
    } finally {
      await lost.close();
    }
  });

  test("leaves the connection usable for the next request", async () => {
    const url = new URL(await download(Buffer.from("first")));
    const raw = new RawConnection(server.port);
    for (const round of [1, 2, 3]) {
      raw.head(`GET ${url.pathname} HTTP/1.1`, "Host: x");
      await raw.until((text) => text.split("\r\n\r\nfirst").length === round + 1);
    }
    raw.end();
  });
});

describe("a file still being verified or with a wrong digest", () => {
  test("is not given out", async () => {
    const upload = await created(server.url, {
      "Upload-Length": "3",
      "Upload-Metadata": `sha256 ${base64("0".repeat(64))}`,
    });
    await patch(upload, 0, "abc");
    const handle = (await head(upload)).headers.get("longshore-handle") ?? "";
    await expect(server.engine.mintDownload("local", handle, null)).rejects.toMatchObject({
      code: "checksum_mismatch",
    });
  });
});
