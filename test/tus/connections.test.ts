import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TransferError } from "../../src/errors.ts";
import { type FilesServer, RawConnection, startFilesServer } from "../support/http-server.ts";
import { base64, created, head, patch, sha256, someBytes } from "../support/tus-requests.ts";
import { waitUntil } from "../support/wait-until.ts";

let server: FilesServer;
beforeAll(async () => {
  server = await startFilesServer({ idleTimeoutMs: 600 });
});
afterAll(() => server.close());

const pathOf = (url: string): string => new URL(url).pathname;
const offsetOf = async (url: string): Promise<number> =>
  Number((await head(url)).headers.get("upload-offset"));

function patchHead(url: string, offset: number, ...more: string[]): string[] {
  return [
    `PATCH ${pathOf(url)} HTTP/1.1`,
    "Host: x",
    "Tus-Resumable: 1.0.0",
    "Content-Type: application/offset+octet-stream",
    `Upload-Offset: ${offset}`,
    ...more,
  ];
}

describe("Expect: 100-continue", () => {
  test("is answered with 100 once the bytes are wanted, then with the result", async () => {
    const url = await created(server.url, { "Upload-Length": "3" });
    const raw = new RawConnection(server.port);
    raw.head(...patchHead(url, 0, "Content-Length: 3", "Expect: 100-continue"));
    expect(await raw.until(/\r\n\r\n/)).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    raw.write("abc");
    expect(await raw.until(/ 204 [\s\S]*\r\n\r\n/)).toMatch(/Upload-Offset: 3\r\n/i);
    raw.end();
  });

  test.each([
    ["a stale offset", 5, ["Content-Length: 3"], 409],
    ["too many bytes", 0, ["Content-Length: 99"], 413],
    ["a wrong version", 0, ["Content-Length: 3", "Tus-Resumable: 9"], 412],
  ])(
    "with %s is answered with the refusal alone, and the connection ends",
    async (_name, offset, more, status) => {
      const url = await created(server.url, { "Upload-Length": "10" });
      const raw = new RawConnection(server.port);
      raw.head(...patchHead(url, offset, ...more, "Expect: 100-continue"));
      const answer = await raw.until(/\}$/);
      expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
      expect(answer).toMatch(/\r\nConnection: close\r\n/i);
      await raw.ended();
    },
  );

  test("of more bytes for a complete upload is refused at once, and of a chunked body without any repeats the answer", async () => {
    const url = await created(server.url, { "Upload-Length": "3" });
    expect((await patch(url, 0, Buffer.from("abc"))).status).toBe(204);
    const refused = new RawConnection(server.port);
    refused.head(...patchHead(url, 3, "Content-Length: 99", "Expect: 100-continue"));
    expect(await refused.until(/\}$/)).toMatch(/^HTTP\/1\.1 413 /);
    const repeated = new RawConnection(server.port);
    repeated.head(...patchHead(url, 3, "Transfer-Encoding: chunked", "Expect: 100-continue"));
    await repeated.until(/^HTTP\/1\.1 100 Continue\r\n\r\n/);
    repeated.write("0\r\n\r\n");
    expect(await repeated.until(/ 204 [\s\S]*\r\n\r\n/)).toMatch(/Upload-Offset: 3\r\n/i);
    repeated.end();
  });

  test("of a creation that is unauthorized, or of another media type, is refused before the body", async () => {
    const guarded = await startFilesServer({
      authenticate: async () => {
        throw new TransferError("unauthorized", "Nobody knows this key.");
      },
    });
    try {
      for (const [port, media, status] of [
        [guarded.port, "application/offset+octet-stream", 401],
        [server.port, "text/plain", 415],
      ] as const) {
        const raw = new RawConnection(port);
        raw.head(
          "POST /files HTTP/1.1",
          "Host: x",
          "Tus-Resumable: 1.0.0",
          "Upload-Length: 10",
          `Content-Type: ${media}`,
          "Content-Length: 10",
          "Expect: 100-continue",
        );
        // From its first byte on: no 100 stands before it.
        expect(await raw.until(/\}$/)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
        await raw.ended();
      }
    } finally {
      await guarded.close();
    }
  });

  test("works as Node does it by itself where the server has no say", async () => {
    const plain = await startFilesServer({ holdContinue: false });
    try {
      const url = await created(plain.url, { "Upload-Length": "3" });
      const raw = new RawConnection(plain.port);
      raw.head(...patchHead(url, 0, "Content-Length: 3", "Expect: 100-continue"));
      await raw.until(/^HTTP\/1\.1 100 Continue\r\n\r\n/);
      raw.write("abc");
      const answer = await raw.until(/ 204 [\s\S]*\r\n\r\n/);
      expect(answer.match(/100 Continue/g)).toHaveLength(1);
      raw.end();
    } finally {
      await plain.close();
    }
  });
});

describe("a body in a transfer coding besides chunked", () => {
  test.each(["gzip, chunked", "identity,chunked"])(
    "(%s) is refused before a byte of it is stored, and the connection ends",
    async (coding) => {
      const url = await created(server.url, { "Upload-Length": "3" });
      const framing = [`Transfer-Encoding: ${coding}`, "Expect: 100-continue"];
      for (const lines of [
        patchHead(url, 0, ...framing),
        [`PUT ${pathOf(url)} HTTP/1.1`, "Host: x", ...framing],
      ]) {
        const raw = new RawConnection(server.port);
        raw.head(...lines);
        const answer = await raw.ended();
        expect(answer).toMatch(/^HTTP\/1\.1 400 /);
        expect(answer).toContain('"param":"Transfer-Encoding"');
      }
      expect(await offsetOf(url)).toBe(0);
    },
  );
});

describe("a body that ends too early", () => {
  test("is kept as far as it came, and the upload goes on from there", async () => {
    const bytes = someBytes(500_000);
    const url = await created(server.url, {
      "Upload-Length": "500000",
      "Upload-Metadata": `sha256 ${base64(sha256(bytes))}`,
    });
    const raw = new RawConnection(server.port);
    raw.head(...patchHead(url, 0, "Content-Length: 500000"));
    raw.write(bytes.subarray(0, 200_000));
    raw.socket.end();
    await raw.ended();
    await waitUntil(async () => (await offsetOf(url)) === 200_000);
    expect((await patch(url, 200_000, bytes.subarray(200_000))).status).toBe(204);
  });

  test("in chunks without their end is kept too, and never taken for the whole file", async () => {
    const url = await created(server.url, { "Upload-Defer-Length": "1" });
    const raw = new RawConnection(server.port);
    raw.head(`PUT ${pathOf(url)} HTTP/1.1`, "Host: x", "Transfer-Encoding: chunked", "Expect: 100-continue");
    await raw.until(/100 Continue/);
    raw.write("3\r\nabc\r\n");
    raw.socket.end();
    await raw.ended();
    await waitUntil(async () => (await offsetOf(url)) === 3);
    const looked = await head(url);
    expect(looked.headers.get("longshore-status")).toBe("receiving");
    expect(looked.headers.get("upload-defer-length")).toBe("1");
  });

  test("by silence is cut off after the idle time, and what came is kept", async () => {
    const url = await created(server.url, { "Upload-Length": "1000" });
    const raw = new RawConnection(server.port);
    raw.head(...patchHead(url, 0, "Content-Length: 1000"));
    raw.write("abc");
    await raw.ended(5_000);
    await waitUntil(async () => (await offsetOf(url)) === 3);
    expect((await patch(url, 3, "d")).status).toBe(204);
  });

  test("is not taken for silent while bytes keep coming", async () => {
    const url = await created(server.url, { "Upload-Length": "12" });
    const raw = new RawConnection(server.port);
    raw.head(...patchHead(url, 0, "Content-Length: 12"));
    for (let piece = 0; piece < 12; piece += 1) {
      raw.write("x");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(await raw.until(/ 204 /)).toMatch(/Upload-Offset: 12\r\n/i);
    raw.end();
  });

  test("with chunks that are none of HTTP is kept as far as it came, and answered by no 5xx", async () => {
    const url = await created(server.url, { "Upload-Length": "100" });
    const raw = new RawConnection(server.port);
    raw.head(...patchHead(url, 0, "Transfer-Encoding: chunked", "Expect: 100-continue"));
    await raw.until(/100 Continue/);
    raw.write("3\r\nabc\r\nthis is no chunk\r\n");
    await raw.ended();
    expect(raw.received).not.toMatch(/HTTP\/1\.1 5/);
    await waitUntil(async () => (await offsetOf(url)) === 3);
  });
});

describe("a body that nobody wants", () => {
  test("when it is small is read away, and the connection takes the next request", async () => {
    const url = await created(server.url, { "Upload-Length": "10" });
    const raw = new RawConnection(server.port);
    raw.head(...patchHead(url, 5, "Content-Length: 100000"));
    await raw.until(/ 413 | 409 /);
    await raw.until(/\}$/);
    expect(raw.received).not.toMatch(/Connection: close/i);
    raw.write(Buffer.alloc(100_000));
    raw.head(...patchHead(url, 0, "Content-Length: 3")).write("abc");
    expect(await raw.until(/ 204 /)).toMatch(/Upload-Offset: 3\r\n/i);
    raw.end();
  });

  test("when it is large is refused while it still comes; the connection ends, and the answer is not lost", async () => {
    const url = await created(server.url, { "Upload-Length": "100000000000" });
    const raw = new RawConnection(server.port);
    raw.head(...patchHead(url, 7, "Content-Length: 90000000000"));
    const piece = Buffer.alloc(1 << 20);
    let sentBytes = 0;
    const pump = (): void => {
      while (!raw.socket.destroyed && raw.socket.write(piece)) sentBytes += piece.byteLength;
    };
    raw.socket.on("drain", pump);
    pump();
    const answer = await raw.until(/\}$/);
    expect(answer).toMatch(/^HTTP\/1\.1 409 /);
    expect(answer).toMatch(/\r\nConnection: close\r\n/i);
    expect(answer).toMatch(/\r\nUpload-Offset: 0\r\n/i);
    await raw.ended();
    // Not swallowed to the end: some 64 MiB, and what the sockets buffer.
    expect(sentBytes).toBeLessThan(256 << 20);
  });

  test("when the client sends all of it before it reads, up to some megabytes, the answer is still there", async () => {
    const url = await created(server.url, { "Upload-Length": "100000000" });
    const raw = new RawConnection(server.port);
    raw.socket.pause();
    raw.head(...patchHead(url, 7, "Content-Length: 8000000"));
    await new Promise<void>((resolve) => raw.socket.write(Buffer.alloc(8_000_000), () => resolve()));
    raw.socket.resume();
    expect(await raw.until(/\}$/)).toMatch(/^HTTP\/1\.1 409 /);
    await raw.ended();
  });

  test("in chunks without end is refused, and the connection ends", async () => {
    const url = await created(server.url, { "Upload-Length": "4" });
    const raw = new RawConnection(server.port);
    raw.head(...patchHead(url, 0, "Transfer-Encoding: chunked"));
    const chunk = Buffer.from(`10000\r\n${"x".repeat(65536)}\r\n`);
    const pump = (): void => {
      while (!raw.socket.destroyed && raw.socket.write(chunk));
    };
    raw.socket.on("drain", pump);
    pump();
    expect(await raw.until(/\}$/)).toMatch(/^HTTP\/1\.1 413 /);
    await raw.ended();
  });
});

describe("two requests for one upload", () => {
  test("HEAD ends a running PATCH; the offset it gives is accepted next", async () => {
    const calm = await startFilesServer();
    try {
      const bytes = someBytes(400_000);
      const url = await created(calm.url, {
        "Upload-Length": "400000",
        "Upload-Metadata": `sha256 ${base64(sha256(bytes))}`,
      });
      const raw = new RawConnection(calm.port);
      raw.head(...patchHead(url, 0, "Content-Length: 400000", "Expect: 100-continue"));
      await raw.until(/100 Continue/);
      raw.write(bytes.subarray(0, 100_000));
      const offset = await offsetOf(url);
      expect(offset).toBeLessThanOrEqual(100_000);
      const next = await patch(url, offset, bytes.subarray(offset));
      expect(next.status).toBe(204);
      expect(await raw.until(/\}$/)).toMatch(/HTTP\/1\.1 423 [\s\S]*Retry-After: \d/i);
      raw.end();
    } finally {
      await calm.close();
    }
  });

  test("PATCH, PUT and DELETE while bytes flow answer 423 with Retry-After and the offset", async () => {
    const url = await created(server.url, { "Upload-Length": "1000000" });
    const raw = new RawConnection(server.port);
    raw.head(...patchHead(url, 0, "Content-Length: 1000000"));
    const drip = setInterval(() => raw.write("x".repeat(100)), 20);
    try {
      await waitUntil(async () => (await patch(url, 0, "y", { "Content-Length": "1" })).status === 423);
      for (const response of [
        await patch(url, 0, "y"),
        await fetch(url, { method: "PUT", body: "x".repeat(1_000_000) }),
        await fetch(url, { method: "DELETE" }),
      ]) {
        expect(response.status).toBe(423);
        expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
        expect(response.headers.get("upload-offset")).toMatch(/^\d+$/);
      }
    } finally {
      clearInterval(drip);
      raw.end();
    }
  });
});

test("Node's requestTimeout is lifted while uploads run, and put back after", async () => {
  const own = await startFilesServer();
  try {
    own.server.requestTimeout = 1234;
    const url = await created(own.url, { "Upload-Length": "6" });
    const other = await created(own.url, { "Upload-Length": "6" });
    const raw = new RawConnection(own.port);
    raw.head(...patchHead(url, 0, "Content-Length: 6")).write("abc");
    await waitUntil(async () => own.server.requestTimeout === 0);
    await patch(other, 0, "abcdef");
    expect(own.server.requestTimeout).toBe(0);
    raw.write("def");
    await raw.until(/ 204 /);
    expect(own.server.requestTimeout).toBe(1234);
    raw.end();
  } finally {
    await own.close();
  }
});
