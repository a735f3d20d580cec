/** `104 (Upload Resumption Supported)`, by bare sockets: few HTTP libraries show interim responses. */
import { ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FilesServer, RawConnection, startFilesServer } from "../support/http-server.ts";
import { append, begun, look, partialMedia } from "../support/resumable-requests.ts";
import { someBytes } from "../support/tus-requests.ts";
import { waitUntil } from "../support/wait-until.ts";

let server: FilesServer;
beforeAll(async () => {
  server = await startFilesServer();
});
afterAll(() => server.close());

const version = "Upload-Draft-Interop-Version: 9";
const canSend = "writeInformation" in ServerResponse.prototype;

function post(...lines: string[]): RawConnection {
  return new RawConnection(server.port).head(
    "POST /files HTTP/1.1",
    "Host: x",
    "Connection: close",
    ...lines,
  );
}

describe.runIf(canSend)("where the client speaks the same draft and Node can send interim responses", () => {
  test("104 tells URL and limits before the body, and the final answer has the same URL", async () => {
    const raw = post(version, "Upload-Complete: ?1", "Content-Length: 6");
    const interim = await raw.until(/\r\n\r\n/);
    expect(interim).toMatch(/^HTTP\/1\.1 104 /);
    const [, location] = /^Location: (\S+)\r$/im.exec(interim) ?? [];
    expect(interim).toMatch(/^Upload-Limit: max-size=1099511627776, max-age=\d+\r$/im);
    expect(interim).toMatch(/^Upload-Draft-Interop-Version: 9\r$/im);
    raw.write("abcdef");
    const answer = (await raw.ended()).slice(interim.length);
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).toMatch(new RegExp(`^Location: ${location}\\r$`, "im"));
  });

  test("a client that is cut off after it goes on at that URL", async () => {
    const bytes = someBytes(200_000);
    const raw = post(version, "Upload-Complete: ?1", `Content-Length: ${bytes.length}`);
    const [, url = ""] = /^Location: (\S+)\r$/im.exec(await raw.until(/\r\n\r\n/)) ?? [];
    raw.write(bytes.subarray(0, 150_000));
    await waitUntil(() => raw.socket.writableLength === 0);
    raw.socket.destroySoon();
    let offset = 0;
    await waitUntil(async () => {
      const response = await look(url);
      offset = Number(response.headers.get("upload-offset"));
      return response.status === 200 && offset > 0;
    });
    const last = await append(url, offset, true, bytes.subarray(offset));
    expect([last.status, last.headers.get("upload-complete")]).toEqual([200, "?1"]);
  });

  test("with Expect: 100-continue both come, 104 first", async () => {
    const raw = post(version, "Upload-Complete: ?1", "Content-Length: 3", "Expect: 100-continue");
    const seen = await raw.until(/100 Continue\r\n\r\n/);
    expect(seen).toMatch(/^HTTP\/1\.1 104 [\s\S]*HTTP\/1\.1 100 Continue\r\n\r\n$/);
    raw.write("abc");
    expect(await raw.ended()).toMatch(/HTTP\/1\.1 200 /);
  });

  test("while a body goes on, 104 tells what is safe, and no URL", async () => {
    const url = await begun(server.url);
    const raw = new RawConnection(server.port);
    raw.head(
      `PATCH ${new URL(url).pathname} HTTP/1.1`,
      "Host: x",
      version,
      `Content-Type: ${partialMedia}`,
      "Upload-Offset: 0",
      "Upload-Complete: ?1",
      `Content-Length: ${6 << 20}`,
    );
    raw.write(someBytes(3 << 20));
    const seen = await raw.until(/104 [\s\S]*\r\n\r\n/);
    expect(Number(/^Upload-Offset: (\d+)\r$/im.exec(seen)?.[1])).toBeGreaterThan(1 << 20);
    expect(seen).not.toMatch(/^Location:/im);
    raw.write(someBytes(3 << 20));
    await raw.until(/HTTP\/1\.1 200 /);
    raw.end();
  });

  test("PUT with Upload-Complete gets one that names its own URL", async () => {
    const url = await begun(server.url);
    const raw = new RawConnection(server.port);
    raw.head(
      `PUT ${new URL(url).pathname} HTTP/1.1`,
      "Host: x",
      "Connection: close",
      version,
      "Upload-Complete: ?1",
      "Content-Length: 3",
    );
    expect(await raw.until(/\r\n\r\n/)).toContain(`Location: ${url}\r\n`);
    raw.write("abc");
    expect(await raw.ended()).toMatch(/HTTP\/1\.1 200 /);
  });

  test("an error that is known before the body comes without one", async () => {
    const raw = post(version, "Upload-Complete: ?1", "Content-Length: 3", "Upload-Length: 4");
    expect(await raw.until(/\}$/)).toMatch(/^HTTP\/1\.1 400 /);
    raw.end();
  });
});

describe("no 104 is sent", () => {
  test.each([
    ["to a client of an older draft", ["Upload-Draft-Interop-Version: 8"], "1.1"],
    ["to a client of a later draft", ["Upload-Draft-Interop-Version: 10"], "1.1"],
    ["to a client that tells no version", [], "1.1"],
    ["for a version that is no integer", ["Upload-Draft-Interop-Version: 9.0"], "1.1"],
    ["over HTTP/1.0", [version], "1.0"],
  ])("%s, and everything else is the same", async (_name, lines, http) => {
    const raw = new RawConnection(server.port);
    raw.head(
      `POST /files HTTP/${http}`,
      "Host: x",
      "Connection: close",
      "Upload-Complete: ?1",
      "Content-Length: 3",
      ...lines,
    );
    raw.write("abc");
    expect(await raw.ended()).toMatch(/^HTTP\/1\.1 200 [\s\S]*Upload-Complete: \?1\r\n/i);
  });

  test("where Node cannot send it, and everything else is the same", async () => {
    const old = await startFilesServer({
      outer: (app) => {
        app.use(async (c, next) => {
          Object.defineProperty((c.env as { outgoing: object }).outgoing, "writeInformation", {
            value: undefined,
          });
          await next();
        });
      },
    });
    try {
      const raw = new RawConnection(old.port);
      raw.head(
        "POST /files HTTP/1.1",
        "Host: x",
        "Connection: close",
        version,
        "Upload-Complete: ?1",
        "Content-Length: 3",
      );
      raw.write("abc");
      expect(await raw.ended()).toMatch(/^HTTP\/1\.1 200 /);
    } finally {
      await old.close();
    }
  });

  test("to a tus client or a plain PUT, whatever version it names", async () => {
    const url = await begun(server.url);
    const raw = new RawConnection(server.port);
    raw.head(
      `PUT ${new URL(url).pathname} HTTP/1.1`,
      "Host: x",
      "Connection: close",
      version,
      "Content-Length: 3",
    );
    raw.write("abc");
    expect(await raw.ended()).toMatch(/^HTTP\/1\.1 200 /);
  });
});
