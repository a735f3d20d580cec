import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { connect, createServer, type IncomingHttpHeaders } from "node:http2";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { Readable } from "node:stream";
import { getRequestListener } from "@hono/node-server";
import { Hono, type MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { compress } from "hono/compress";
import { cors } from "hono/cors";
import { secureHeaders } from "hono/secure-headers";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type FilesServer, startFilesServer } from "../support/http-server.ts";
import { openBelow, tellsOpenFiles } from "../support/open-files.ts";
import {
  base64,
  created,
  fieldsOf,
  head,
  inChunks,
  offsetMedia,
  patch,
  problemOf,
  sha256,
  someBytes,
  stored,
  tusHeaders,
} from "../support/tus-requests.ts";

describe("mounted in somebody's own app, under a path, behind their middleware", () => {
  let server: FilesServer;
  const seen: number[] = [];
  beforeAll(async () => {
    server = await startFilesServer({
      mountPath: "/transfer/v1",
      outer: (app) => {
        app.use(cors({ origin: "https://own.example" }));
        app.use(secureHeaders());
        app.use(compress());
        app.use(async (c, next) => {
          c.header("X-Before", "1");
          await next();
          c.header("X-After", "2");
          seen.push(c.res.status);
        });
        app.get("/", (c) => c.text("home"));
      },
    });
  });
  afterAll(() => server.close());

  test("uploads and downloads work, with the URLs of that path", async () => {
    const bytes = someBytes(3_000_000);
    const url = await created(server.url, {
      "Upload-Length": "3000000",
      "Upload-Metadata": `filename ${base64("a.txt")},type ${base64("text/plain")}`,
    });
    expect(url.startsWith(`${server.url}/files/`)).toBe(true);
    expect((await patch(url, 0, bytes.subarray(0, 1_000_000))).status).toBe(204);
    expect(fieldsOf(await head(url))).toMatchObject({ "upload-offset": "1000000", "x-after": "2" });
    expect((await fetch(url, { method: "PUT", body: bytes })).status).toBe(200);
    const handle = (await head(url)).headers.get("longshore-handle") ?? "";
    const { ticket } = await server.engine.mintDownload("local", handle, null);
    for (let round = 0; round < 3; round += 1) {
      const response = await fetch(server.links.download(ticket, "a.txt"), {
        headers: { "Accept-Encoding": "gzip" },
      });
      expect(response.status).toBe(200);
      expect(fieldsOf(response)).toMatchObject({
        "x-before": "1",
        "x-after": "2",
        "x-frame-options": "SAMEORIGIN",
        "content-length": "3000000",
        "content-type": "text/plain",
      });
      expect(response.headers.get("content-encoding")).toBeNull();
      expect(sha256(new Uint8Array(await response.arrayBuffer()))).toBe(sha256(bytes));
    }
    const part = await fetch(server.links.download(ticket, "a.txt"), {
      headers: { "Accept-Encoding": "gzip", Range: "bytes=1000-65000" },
    });
    expect(part.status).toBe(206);
    expect(fieldsOf(part)).toMatchObject({
      "x-before": "1",
      "x-after": "2",
      "x-frame-options": "SAMEORIGIN",
      "content-range": "bytes 1000-65000/3000000",
      "content-length": "64001",
    });
    expect(part.headers.get("content-encoding")).toBeNull();
    expect(sha256(new Uint8Array(await part.arrayBuffer()))).toBe(sha256(bytes.subarray(1000, 65_001)));
    expect(seen).toContain(200);
    expect(await (await fetch(new URL("/", server.url))).text()).toBe("home");
  });

  test("a body refused early does no harm", async () => {
    const url = await created(server.url, { "Upload-Length": "1000000" });
    const response = await patch(url, 5, someBytes(900_000));
    expect(response.status).toBe(409);
    expect(await response.json()).toMatchObject({ code: "offset_mismatch" });
    expect((await patch(url, 0, someBytes(1_000_000))).status).toBe(204);
  });
});

describe("through app.request(), without a Node server", () => {
  let server: FilesServer;
  beforeAll(async () => {
    server = await startFilesServer();
  });
  afterAll(() => server.close());
  const ask = async (url: string, init: RequestInit): Promise<Response> => server.app.request(url, init);

  test("an upload in pieces, a PUT and a download work", async () => {
    const bytes = someBytes(500_000);
    const made = await ask("/files", {
      method: "POST",
      headers: { ...tusHeaders, "Upload-Length": "500000" },
    });
    expect(made.status).toBe(201);
    const url = made.headers.get("location") ?? "";
    const first = await ask(url, {
      method: "PATCH",
      headers: { ...tusHeaders, "Upload-Offset": "0", "Content-Type": offsetMedia },
      body: bytes.subarray(0, 200_000),
    });
    expect([first.status, first.headers.get("upload-offset")]).toEqual([204, "200000"]);
    const whole = await ask(url, { method: "PUT", body: inChunks(bytes), duplex: "half" } as RequestInit);
    expect(await whole.json()).toMatchObject({ status: "complete", sha256: sha256(bytes) });
    const looked = await ask(url, { method: "HEAD" });
    const { ticket } = await server.engine.mintDownload(
      "local",
      looked.headers.get("longshore-handle") ?? "",
      null,
    );
    const got = await ask(server.links.download(ticket, null), {});
    expect(sha256(new Uint8Array(await got.arrayBuffer()))).toBe(sha256(bytes));
    const several = await ask(server.links.download(ticket, null), {
      headers: { Range: "bytes=0-0,9000-9000" },
    });
    expect((await several.arrayBuffer()).byteLength).toBe(Number(several.headers.get("content-length")));
  });

  test("a PUT without any body answers 411", async () => {
    const url = await created(server.url, { "Upload-Length": "3" });
    expect((await ask(url, { method: "PUT" })).status).toBe(411);
  });

  test("a path that is none of the doors is left to the app around", async () => {
    const around = new Hono();
    around.route("/", server.app);
    around.all("*", (c) => c.text("mine", 418 as 200));
    expect((await around.request("/files/a/b/c")).status).toBe(418);
    expect((await around.request("/filesystem")).status).toBe(418);
    expect((await around.request("/d")).status).toBe(418);
  });
});

describe("a middleware that takes the body of a download in hand gets all of it, whether short or long:", () => {
  const flipped = (piece: Uint8Array): Uint8Array => piece.map((byte) => byte ^ 0x5a);
  const flip = () =>
    new TransformStream<Uint8Array, Uint8Array>({
      transform: (piece, controller) => controller.enqueue(flipped(piece)),
    });
  const seen = { bytes: 0 };
  const count = async (body: ReadableStream<Uint8Array> | null) => {
    for await (const piece of body ?? []) seen.bytes += piece.byteLength;
  };
  const bodyOf = (response: Response): ReadableStream<Uint8Array> => response.body ?? new Blob([]).stream();

  test.each<[string, boolean, (response: Response) => Response]>([
    ["a transform", true, (response) => new Response(bodyOf(response).pipeThrough(flip()), response)],
    [
      "a reader of its own",
      true,
      (response) => {
        let reader: ReadableStreamDefaultReader<Uint8Array> | null = null;
        const body = new ReadableStream<Uint8Array>(
          {
            async pull(controller) {
              reader ??= bodyOf(response).getReader();
              const next = await reader.read();
              if (next.done) controller.close();
              else controller.enqueue(flipped(next.value));
            },
          },
          { highWaterMark: 0 },
        );
        return new Response(body, response);
      },
    ],
    [
      "a copy",
      false,
      (response) => {
        void count(response.clone().body);
        return response;
      },
    ],
    [
      "two branches",
      false,
      (response) => {
        const [one, other] = bodyOf(response).tee();
        void count(other);
        return new Response(one, response);
      },
    ],
  ])("%s", async (_name, flips, take) => {
    const server = await startFilesServer({
      outer: (app) => {
        app.use(async (c, next) => {
          await next();
          if (c.req.method === "GET") c.res = take(c.res);
        });
      },
    });
    try {
      for (const size of [100_000, 3_000_000]) {
        const bytes = someBytes(size);
        const handle = await stored(server.url, bytes);
        const { ticket } = await server.engine.mintDownload("local", handle, null);
        seen.bytes = 0;
        const got = new Uint8Array(await (await fetch(server.links.download(ticket, null))).arrayBuffer());
        expect(sha256(flips ? flipped(got) : got)).toBe(sha256(bytes));
        if (!flips) await vi.waitFor(() => expect(seen.bytes).toBe(size));
      }
    } finally {
      await server.close();
    }
  });
});

test.skipIf(!tellsOpenFiles)("a middleware that answers something else leaves no file open", async () => {
  const server = await startFilesServer({
    outer: (app) => {
      app.use(async (c, next) => {
        await next();
        if (c.req.method !== "GET") return;
        c.res = undefined;
        c.res = new Response("no", { status: 403 });
      });
    },
  });
  try {
    const handle = await stored(server.url, someBytes(3_000_000));
    const { ticket } = await server.engine.mintDownload("local", handle, null);
    expect((await fetch(server.links.download(ticket, null))).status).toBe(403);
    await server.engine.removeOwn("local", handle);
    await vi.waitFor(() => expect(openBelow(path.join(server.dataDir, "blobs"))).toBe(0), 10_000);
  } finally {
    await server.close();
  }
});

test("a middleware that reads the body of a download gets it", async () => {
  const server = await startFilesServer({
    outer: (app) => {
      app.use(async (c, next) => {
        await next();
        if (c.req.method === "GET") c.res = new Response((await c.res.text()).toUpperCase(), { status: 200 });
      });
    },
  });
  try {
    const handle = await stored(server.url, Buffer.from("abc"));
    const { ticket } = await server.engine.mintDownload("local", handle, null);
    expect(await (await fetch(server.links.download(ticket, null))).text()).toBe("ABC");
  } finally {
    await server.close();
  }
});

describe("a middleware in front that", () => {
  test.each<[string, MiddlewareHandler]>([
    ["limits bodies", bodyLimit({ maxSize: 1 << 30 })],
    [
      "asks for the body without reading it",
      async (c, next) => {
        void c.req.raw.body;
        await next();
      },
    ],
    [
      "reads a copy of the request",
      async (c, next) => {
        void c.req.raw.clone().arrayBuffer();
        await next();
      },
    ],
  ])("%s does no harm to an upload", async (_name, middleware) => {
    const server = await startFilesServer({ outer: (app) => void app.use(middleware) });
    try {
      const bytes = someBytes(3_000_000);
      for (const [size, body] of [
        [bytes.length, () => bytes],
        [bytes.length, () => inChunks(bytes)],
        [1000, () => bytes.subarray(0, 1000)],
      ] as const) {
        const digest = Buffer.from(sha256(bytes.subarray(0, size)), "hex").toString("base64");
        const url = await created(server.url, { "Upload-Length": String(size) });
        const answer = await patch(url, 0, body());
        expect([answer.status, answer.headers.get("repr-digest")]).toEqual([204, `sha-256=:${digest}:`]);
        expect((await fetch(url, { method: "PUT", body: bytes.subarray(0, size) })).status).toBe(200);
      }
    } finally {
      await server.close();
    }
  });
});

test("a body that nobody has asked for passes no web stream", async () => {
  const server = await startFilesServer();
  const fromWeb = vi.spyOn(Readable, "fromWeb");
  try {
    const url = await created(server.url, { "Upload-Length": "100000" });
    expect((await patch(url, 0, someBytes(50_000))).status).toBe(204);
    expect((await fetch(url, { method: "PUT", body: someBytes(100_000) })).status).toBe(200);
    expect(fromWeb).not.toHaveBeenCalled();
  } finally {
    fromWeb.mockRestore();
    await server.close();
  }
});

test("a body that a middleware has begun to read is refused: what is left of it is not the file", async () => {
  const server = await startFilesServer({
    outer: (app) => {
      app.use(async (c, next) => {
        const { incoming } = c.env as { incoming: IncomingMessage };
        if (c.req.header("X-Test") !== undefined) {
          await once(incoming, "data");
          incoming.pause();
        }
        await next();
      });
    },
  });
  try {
    const bytes = someBytes(3_000_000);
    for (const length of [{ "Upload-Length": String(bytes.length) }, { "Upload-Defer-Length": "1" }]) {
      const url = await created(server.url, length);
      const read = { "X-Test": "read" };
      for (const answer of [
        await patch(url, 0, bytes, read),
        await patch(url, 0, inChunks(bytes), read),
        await fetch(url, { method: "PUT", headers: read, body: bytes }),
      ])
        expect([answer.status, (await problemOf(answer)).code]).toEqual([500, "internal_error"]);
      expect((await head(url)).headers.get("upload-offset")).toBe("0");
      const put = await fetch(url, { method: "PUT", body: bytes });
      expect(await put.json()).toMatchObject({ status: "complete", sha256: sha256(bytes) });
    }
    expect(server.logged.some(({ event }) => event === "request_failed")).toBe(true);
  } finally {
    await server.close();
  }
});

test("works over HTTP/2", async () => {
  const server = await startFilesServer();
  const listener = createServer(getRequestListener(server.app.fetch));
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const session = connect(`http://127.0.0.1:${(listener.address() as AddressInfo).port}`);
  const ask = (headers: Record<string, string>, body?: Uint8Array) =>
    new Promise<{ fields: IncomingHttpHeaders; body: Buffer }>((resolve, reject) => {
      const stream = session.request(headers, { endStream: body === undefined });
      const pieces: Buffer[] = [];
      let fields: IncomingHttpHeaders = {};
      stream.on("response", (told) => {
        fields = told;
      });
      stream.on("data", (piece: Buffer) => pieces.push(piece));
      stream.on("end", () => resolve({ fields, body: Buffer.concat(pieces) })).on("error", reject);
      if (body !== undefined) stream.end(body);
    });
  try {
    const bytes = someBytes(1_000_000);
    const made = await ask({
      ":method": "POST",
      ":path": "/files",
      "tus-resumable": "1.0.0",
      "upload-defer-length": "1",
    });
    expect(made.fields[":status"]).toBe(201);
    const path = new URL(made.fields.location ?? "").pathname;
    const missing = await ask({ ":method": "PUT", ":path": path });
    expect(missing.fields[":status"]).toBe(411);
    const put = await ask({ ":method": "PUT", ":path": path }, bytes);
    expect(JSON.parse(put.body.toString())).toMatchObject({ status: "complete", sha256: sha256(bytes) });
    const { ticket } = await server.engine.mintDownload(
      "local",
      String(put.fields["longshore-handle"]),
      null,
    );
    const got = await ask({
      ":method": "GET",
      ":path": new URL(server.links.download(ticket, null)).pathname,
    });
    expect([got.fields[":status"], sha256(got.body)]).toEqual([200, sha256(bytes)]);
  } finally {
    session.destroy();
    listener.close();
    await server.close();
  }
});
