/** What the listener answers by itself, and how it ends. */
import { createHash } from "node:crypto";
import request from "supertest";
import { describe, expect, test } from "vitest";
import { listen } from "../../src/server/listen.ts";
import { ListenError } from "../../src/server/listen-error.ts";
import { RawConnection } from "../support/http-server.ts";
import { startTestServer } from "../support/running-server.ts";
import { created, head, offsetMedia } from "../support/tus-requests.ts";
import { waitUntil } from "../support/wait-until.ts";

describe("requests that are none", () => {
  test("header fields that are too large answer 431 with what to do", async () => {
    const server = await startTestServer();
    const raw = new RawConnection(server.port).head(
      "GET / HTTP/1.1",
      "Host: localhost",
      `X: ${"a".repeat(40_000)}`,
    );
    const answer = await raw.until(/"code"/);
    expect(answer).toMatch(/^HTTP\/1\.1 431 Request Header Fields Too Large\r\n/);
    expect(answer).toContain("Content-Type: application/problem+json");
    expect(answer).toContain('"code":"headers_too_large"');
  });

  test("20,000 bytes of header fields are taken", async () => {
    const server = await startTestServer();
    const answer = await request(server.publicUrl).get("/healthz").set("X", "a".repeat(20_000));
    expect(answer.status).toBe(200);
  });

  test.each([
    ["no HTTP", "GARBAGE\r\n\r\n"],
    ["a header field without a name", "GET / HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n"],
    [
      "two lengths",
      "PUT /files/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    ],
    [
      "a request that tries to smuggle",
      "PUT /files/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
  ])("%s answers 400 as problem+json and closes", async (_what, bytes) => {
    const server = await startTestServer();
    const raw = new RawConnection(server.port).write(bytes);
    const answer = await raw.until(/"code"/);
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(answer).toContain('"code":"invalid_param"');
    await waitUntil(() => raw.closed);
  });

  test.each([
    "GET /healthz HTTP/1.0",
    "GET /healthz HTTP/1.1",
    "POST /mcp HTTP/1.1",
    "OPTIONS /files HTTP/1.1",
  ])("a request without Host (%s) answers 400 as problem+json", async (line) => {
    const server = await startTestServer();
    const answer = await new RawConnection(server.port).head(line).until(/"code"/);
    expect(answer).toMatch(/^HTTP\/1\.[01] 400/);
    expect(answer).toMatch(/content-type: application\/problem\+json/i);
    expect(answer).toMatch(/"detail":"[^"]*Host/);
    expect(answer).toContain('"code":"invalid_param"');
  });
});

test("an answer of /mcp ends the connection where the client asks for that, and keeps it otherwise", async () => {
  const server = await startTestServer();
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
  const lines = [
    ...["POST /mcp HTTP/1.1", "Host: localhost", "Content-Type: application/json"],
    ...["Accept: application/json, text/event-stream", `Content-Length: ${body.length}`],
  ];
  const closing = new RawConnection(server.port).head(...lines, "Connection: close").write(body);
  const answer = await closing.ended();
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  expect(answer).toMatch(/\r\nconnection: close\r\n/i);
  expect(answer).toContain("text/event-stream");
  const keeping = new RawConnection(server.port).head(...lines).write(body);
  expect(await keeping.until(/\r\n0\r\n\r\n$/)).not.toMatch(/\r\nconnection: close\r\n/i);
  await keeping.head("GET /healthz HTTP/1.1", "Host: localhost").until(/"status":"ok"/);
  keeping.end();
});

describe("Expect: 100-continue", () => {
  test("an upload is asked for its bytes only when they are wanted", async () => {
    const server = await startTestServer();
    const raw = new RawConnection(server.port).head(
      "PUT /files/no-such-ticket HTTP/1.1",
      "Host: localhost",
      "Content-Length: 1000000",
      "Expect: 100-continue",
    );
    const answer = await raw.until(/^HTTP/);
    expect(answer).toMatch(/^HTTP\/1\.1 404/);
    const path = new URL(await created(server.publicUrl, { "Upload-Length": "5" })).pathname;
    const wanted = new RawConnection(server.port).head(
      `PUT ${path} HTTP/1.1`,
      "Host: localhost",
      "Content-Length: 5",
      "Expect: 100-continue",
    );
    await wanted.until(/100 Continue/);
    await wanted.write("hello").until(/"status":"complete"/);
  });

  test("every other request is asked at once", async () => {
    const server = await startTestServer();
    const raw = new RawConnection(server.port).head(
      "POST /mcp HTTP/1.1",
      "Host: localhost",
      "Content-Type: application/json",
      "Content-Length: 2",
      "Expect: 100-continue",
    );
    await raw.until(/100 Continue/);
    await raw.write("{}").until(/HTTP\/1\.1 4\d\d/);
  });
});

describe("an address that cannot be had", () => {
  const application = () => () => new Response();
  const log = () => {};

  test("a port in use is told with what to do", async () => {
    const server = await startTestServer();
    const again = listen({ host: "127.0.0.1", port: server.port, log, application });
    await expect(again).rejects.toThrow(ListenError);
    await expect(again).rejects.toThrow(/is in use, .*--port or LONGSHORE_PORT.*--port 0/);
  });

  test("an address of another machine is told", async () => {
    await expect(listen({ host: "192.0.2.1", port: 0, log, application })).rejects.toThrow(
      /has no address 192\.0\.2\.1/,
    );
  });
});

describe("stopping", () => {
  test("a running upload commits what has come, and goes on at that offset after the next start", async () => {
    const server = await startTestServer();
    const url = await created(server.publicUrl, { "Upload-Length": "100000" });
    const raw = new RawConnection(server.port).head(
      `PATCH ${new URL(url).pathname} HTTP/1.1`,
      "Host: localhost",
      "Tus-Resumable: 1.0.0",
      "Upload-Offset: 0",
      `Content-Type: ${offsetMedia}`,
      "Content-Length: 100000",
      "Expect: 100-continue",
    );
    await raw.until(/100 Continue/);
    raw.write(Buffer.alloc(60_000, 7));
    await waitUntil(() => raw.socket.bytesWritten > 60_000 && raw.socket.writableLength === 0);
    // The bytes have arrived once another request has been answered.
    await request(server.publicUrl).get("/readyz");
    const startedAt = performance.now();
    await server.stop();
    expect(performance.now() - startedAt).toBeLessThan(5000);
    expect(server.lines.at(-1)).toMatch(/"event":"server.stopped","cut":false/);
    const next = await startTestServer({ dataDir: server.dataDir });
    const answer = await head(url.replace(String(server.port), String(next.port)));
    expect(answer.headers.get("upload-offset")).toBe("60000");
  });

  test("a running download comes to its end, and nothing new is taken meanwhile", async () => {
    const server = await startTestServer();
    const bytes = Buffer.alloc(24 * 2 ** 20, "longshore ");
    const url = await created(server.publicUrl, { "Upload-Length": String(bytes.length) });
    const { body } = await request(url).put("").send(bytes);
    const { handle } = body as { handle: string };
    const call = await request(server.mcpUrl)
      .post("")
      .set({ Accept: "application/json, text/event-stream" })
      .send({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name: "file_download", arguments: { handle } },
      });
    const download = /http:[^"\\]*\/d\/[\w-]{40}\/[^"\\]*/.exec(call.text)?.[0] ?? "";
    const response = await fetch(download);
    expect(response.status).toBe(200);
    const stopped = server.stop();
    await expect(fetch(server.mcpUrl)).rejects.toThrow();
    const hash = createHash("sha256");
    for await (const piece of response.body ?? []) hash.update(piece);
    expect(hash.digest("hex")).toBe(createHash("sha256").update(bytes).digest("hex"));
    await stopped;
    expect(server.lines.at(-1)).toMatch(/"event":"server.stopped","cut":false/);
  });

  test("a call that waits for an upload is answered at once", async () => {
    const server = await startTestServer();
    const answer = await request(server.publicUrl)
      .post("/files")
      .set({ "Tus-Resumable": "1.0.0", "Upload-Length": "5" });
    const handle = answer.headers["longshore-handle"];
    const waiting = request(server.mcpUrl)
      .post("")
      .set({ Accept: "application/json, text/event-stream" })
      .send({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name: "upload_status", arguments: { handle, waitMs: 40_000 } },
      })
      .then(({ text }) => text);
    await request(server.publicUrl).get("/readyz");
    const startedAt = performance.now();
    await server.stop();
    expect(await waiting).toContain("receiving");
    expect(performance.now() - startedAt).toBeLessThan(5000);
  });

  test("what does not end within the grace is cut", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const listening = await listen({
      host: "127.0.0.1",
      port: 0,
      log: () => {},
      application: () => async () => {
        resolve();
        return new Promise<Response>(() => {});
      },
    });
    const raw = new RawConnection(listening.port).head("GET / HTTP/1.1", "Host: localhost");
    await promise;
    expect(await listening.stop(100)).toBe(false);
    await waitUntil(() => raw.closed);
  });

  test("twice is once", async () => {
    const server = await startTestServer();
    await Promise.all([server.stop(), server.stop()]);
    expect(server.lines.filter((line) => line.includes('"server.stopped"'))).toHaveLength(1);
  });
});
