import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TransferEngine } from "../../src/transfer/engine.ts";
import { type FilesServer, startFilesServer } from "../support/http-server.ts";
import { partialMedia } from "../support/resumable-requests.ts";
import {
  base64,
  created,
  fieldsOf,
  head,
  offsetMedia,
  patch,
  post,
  problemOf,
  sha256,
  someBytes,
  tusHeaders,
} from "../support/tus-requests.ts";

let server: FilesServer;
beforeAll(async () => {
  server = await startFilesServer({
    authenticate: async (request) => request.headers.get("authorization") ?? "local",
    limits: { maxFileBytes: 1 << 20 },
  });
});
afterAll(() => server.close());

const bytes = someBytes(100_000);

async function partial(
  content: Uint8Array<ArrayBuffer>,
  fields: Record<string, string> = {},
): Promise<string> {
  const url = await created(server.url, {
    "Upload-Length": String(content.length),
    "Upload-Concat": "partial",
    ...fields,
  });
  if (content.length > 0) expect((await patch(url, 0, content)).status).toBe(204);
  return url;
}

const parts = (): Promise<string[]> =>
  Promise.all([
    partial(bytes.subarray(0, 30_000)),
    partial(bytes.subarray(30_000, 80_000)),
    partial(bytes.subarray(80_000)),
  ]);

const final = (urls: readonly string[], fields: Record<string, string> = {}): Promise<Response> =>
  post(server.url, { "Upload-Concat": `final;${urls.join(" ")}`, ...fields });

const handleAt = async (url: string): Promise<string> =>
  (await head(url)).headers.get("longshore-handle") ?? "";
const recordAt = async (url: string) => server.engine.status("local", await handleAt(url));

async function contentAt(url: string): Promise<Buffer> {
  const { ticket, transfer } = await server.engine.mintDownload("local", await handleAt(url), null);
  return Buffer.from(await (await fetch(server.links.download(ticket, transfer.filename))).arrayBuffer());
}

describe("a partial upload", () => {
  test("says so on HEAD, needs no metadata, and is finished when all its bytes are here", async () => {
    const url = await partial(bytes);
    expect(fieldsOf(await head(url))).toMatchObject({
      "upload-concat": "partial",
      "upload-length": "100000",
      "upload-offset": "100000",
      "longshore-status": "receiving",
      "upload-expires": expect.any(String),
    });
    expect((await patch(url, 100_000, "")).status).toBe(204);
    expect((await patch(url, 100_000, "x")).status).toBe(413);
    expect((await patch(url, 0, "x")).status).toBe(409);
  });

  test("may come with its bytes, with a deferred length, and by PUT", async () => {
    const withBytes = await post(
      server.url,
      { "Upload-Length": "3", "Upload-Concat": "partial", "Content-Type": offsetMedia },
      "abc",
    );
    expect([withBytes.status, withBytes.headers.get("upload-offset")]).toEqual([201, "3"]);
    const deferred = await created(server.url, { "Upload-Defer-Length": "1", "Upload-Concat": "partial" });
    expect((await patch(deferred, 0, "def", { "Upload-Length": "3" })).status).toBe(204);
    const put = await created(server.url, { "Upload-Defer-Length": "1", "Upload-Concat": "partial" });
    expect((await fetch(put, { method: "PUT", body: "ghi" })).status).toBe(204);
    const response = await final([withBytes.headers.get("location") ?? "", deferred, put]);
    expect(response.status).toBe(201);
    expect((await contentAt(response.headers.get("location") ?? "")).toString()).toBe("abcdefghi");
  });

  test("may not come with a digest of its own, which nobody would look at", async () => {
    const digest = { "Repr-Digest": `sha-256=:${Buffer.from(sha256("abc"), "hex").toString("base64")}:` };
    const url = await created(server.url, { "Upload-Length": "3", "Upload-Concat": "partial" });
    const put = await fetch(url, { method: "PUT", headers: digest, body: "abc" });
    expect([put.status, await problemOf(put)]).toMatchObject([400, { code: "invalid_param" }]);
    const headers = {
      "Upload-Complete": "?1",
      "Upload-Offset": "0",
      "Content-Type": partialMedia,
      ...digest,
    };
    const append = await fetch(url, { method: "PATCH", headers, body: "abc" });
    expect([append.status, append.headers.get("upload-offset")]).toEqual([400, "0"]);
    expect((await patch(url, 0, "abc")).status).toBe(204);
  });

  test("is not listed, cannot be read, and ends like any upload by DELETE", async () => {
    const url = await partial(bytes);
    const handle = await handleAt(url);
    const { transfers } = await server.engine.list("local", { status: null, limit: 1000, cursor: null });
    expect(transfers.map((one) => one.handle)).not.toContain(handle);
    await expect(server.engine.openOwn("local", handle)).rejects.toMatchObject({ code: "not_active" });
    expect((await fetch(url, { method: "DELETE", headers: tusHeaders })).status).toBe(204);
    expect((await head(url)).status).toBe(404);
  });
});

describe("a final upload", () => {
  test("has the bytes of its parts in order, a handle of its own, its digest and its metadata", async () => {
    const urls = await parts();
    const handles = await Promise.all(urls.map(handleAt));
    const metadata = `filename ${base64("whole.bin")},sha256 ${base64(sha256(bytes))}`;
    const response = await final(urls, { "Upload-Metadata": metadata });
    expect(response.status).toBe(201);
    const url = response.headers.get("location") ?? "";
    const digest = `sha-256=:${Buffer.from(sha256(bytes), "hex").toString("base64")}:`;
    expect(fieldsOf(response)).toMatchObject({
      "upload-offset": "100000",
      "longshore-status": "complete",
      "repr-digest": digest,
    });
    const looked = await head(url);
    expect(fieldsOf(looked)).toMatchObject({
      "upload-concat": `final;${urls.join(" ")}`,
      "upload-length": "100000",
      "upload-offset": "100000",
      "upload-metadata": metadata,
      "longshore-status": "complete",
    });
    expect(handles).not.toContain(await handleAt(url));
    expect(await recordAt(url)).toMatchObject({
      filename: "whole.bin",
      sha256: sha256(bytes),
      sizeBytes: 100_000,
    });
    expect((await contentAt(url)).equals(bytes)).toBe(true);
    for (const [index, gone] of urls.entries()) {
      expect((await head(gone)).status).toBe(404);
      const handle = handles[index] ?? "";
      await expect(server.engine.status("local", handle)).rejects.toMatchObject({ code: "unknown_handle" });
    }
  });

  test("takes URLs that are relative, of another host or mount, and with a name behind", async () => {
    const [one = "", two = "", three = ""] = (await parts()).map((url) => new URL(url).pathname);
    const mixed = [one, `https://proxy.example/up${two}/name.bin`, three.split("/").at(-1) ?? ""];
    const response = await final(mixed);
    expect(response.status).toBe(201);
    const url = response.headers.get("location") ?? "";
    expect((await contentAt(url)).equals(bytes)).toBe(true);
    expect((await head(url)).headers.get("upload-concat")).toBe(`final;${mixed.join(" ")}`);
  });

  test("of a wrong declared digest answers 422 with its URL, and upload_resume starts it over as an ordinary upload", async () => {
    const urls = await parts();
    const response = await final(urls, { "Upload-Metadata": `sha256 ${base64("0".repeat(64))}` });
    expect(response.status).toBe(422);
    expect(await problemOf(response)).toMatchObject({ code: "checksum_mismatch" });
    const url = response.headers.get("location") ?? "";
    expect((await head(url)).status).toBe(422);
    const handle = response.headers.get("longshore-handle") ?? "";
    expect(await server.engine.status("local", handle)).toMatchObject({
      status: "mismatch",
      offset: 100_000,
    });
    expect((await patch(url, 100_000, "")).status).toBe(403);
    const { ticket } = await server.engine.resume("local", handle);
    const again = server.links.upload(ticket);
    expect((await head(url)).status).toBe(404);
    expect(fieldsOf(await head(again))).toMatchObject({ "upload-offset": "0", "upload-length": "100000" });
    expect((await head(again)).headers.get("upload-concat")).toBeNull();
    expect((await patch(again, 0, bytes.subarray(0, 10))).status).toBe(204);
    expect((await patch(again, 10, bytes.subarray(10))).status).toBe(422);
  });

  test("asked for again with the same parts is the same upload; other metadata is a conflict", async () => {
    const urls = await parts();
    const first = await final(urls);
    const second = await final(urls);
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(second.headers.get("longshore-handle")).toBe(first.headers.get("longshore-handle"));
    expect(second.headers.get("location")).not.toBe(first.headers.get("location"));
    for (const { headers } of [first, second])
      expect((await head(headers.get("location") ?? "")).status).toBe(200);
    expect((await final(urls, { "Upload-Metadata": "a YQ==" })).status).toBe(409);
    expect((await final(urls.toReversed())).status).toBe(404);
  });

  test.each(["PATCH", "PUT"])(
    "takes no bytes by %s: 403 with its handle, and nothing changes",
    async (method) => {
      const url = (await final(await parts())).headers.get("location") ?? "";
      for (const offset of ["100000", "0"]) {
        const response = await fetch(url, {
          method,
          headers: {
            ...(method === "PATCH" && tusHeaders),
            "Upload-Offset": offset,
            "Content-Type": offsetMedia,
          },
          body: "x",
        });
        expect(response.status).toBe(403);
        expect(await problemOf(response)).toMatchObject({ code: "final_upload", retryable: false });
        expect(fieldsOf(response)).toMatchObject({
          "longshore-handle": await handleAt(url),
          "longshore-status": "complete",
        });
        expect(response.headers.get("upload-offset")).toBeNull();
      }
      expect((await contentAt(url)).equals(bytes)).toBe(true);
    },
  );

  test("of parts that are not finished answers 409 and says which and where; done as told, the same request succeeds", async () => {
    const [one = "", two = "", three = ""] = await parts();
    const open = await created(server.url, { "Upload-Length": "10", "Upload-Concat": "partial" });
    await patch(open, 0, "abcd");
    const response = await final([one, open, two, three]);
    expect(response.status).toBe(409);
    expect(await problemOf(response)).toMatchObject({
      code: "not_active",
      retryable: true,
      unfinished: { position: 2, offset: 4, size: 10 },
    });
    expect((await head(one)).status).toBe(200);
    await patch(open, 4, "efghij");
    expect((await final([one, open, two, three])).status).toBe(201);
    const deferred = await created(server.url, { "Upload-Defer-Length": "1", "Upload-Concat": "partial" });
    expect((await final([deferred])).status).toBe(409);
  });

  test("of a part that is unknown, another's, no partial upload or named twice is refused, and nothing changes", async () => {
    const [one = "", two = ""] = await parts();
    const strangers = await partial(Buffer.from("abc"), { Authorization: "Bearer x" });
    const whole = await created(server.url, { "Upload-Length": "1" });
    for (const [urls, status] of [
      [[one, `${server.url}/files/${"a".repeat(40)}`], 404],
      [[one, "/files/nothing"], 404],
      [[one, "/elsewhere"], 404],
      [[one, strangers], 404],
      [[one, whole], 400],
      [[one, two, one], 400],
      [[one, "http://[/files/x"], 400],
    ] as const) {
      expect((await final(urls)).status, urls.join(" ")).toBe(status);
    }
    expect((await final([one, two], { Authorization: "Bearer x" })).status).toBe(404);
    expect((await final([one, two])).status).toBe(201);
  });

  test("may not come with a length or a body", async () => {
    const urls = await parts();
    for (const fields of [{ "Upload-Length": "100000" }, { "Upload-Defer-Length": "1" }] as Record<
      string,
      string
    >[]) {
      const response = await final(urls, fields);
      expect(response.status).toBe(400);
      expect(await problemOf(response)).toMatchObject({
        code: "invalid_param",
        param: Object.keys(fields)[0],
      });
    }
    const body = await post(
      server.url,
      { "Upload-Concat": `final;${urls.join(" ")}`, "Content-Type": offsetMedia },
      "abc",
    );
    expect(body.status).toBe(403);
    expect((await final(urls)).status).toBe(201);
  });

  test.each([
    "",
    "final",
    "final;",
    "final; ",
    "Final;/files/a",
    "partial ;",
    "partial;x",
    "partial,final",
    `final;${"/a ".repeat(1001)}`,
  ])("%j in Upload-Concat answers 400", async (text) => {
    const response = await post(server.url, { "Upload-Concat": text, "Upload-Length": "1" });
    expect(response.status).toBe(400);
    expect(await problemOf(response)).toMatchObject({ code: "invalid_param", param: "Upload-Concat" });
  });

  test("larger than a file may be answers 413, and the parts stay", async () => {
    const half = someBytes(600_000);
    const urls = [await partial(half), await partial(half)];
    const response = await final(urls);
    expect(response.status).toBe(413);
    expect(await problemOf(response)).toMatchObject({ code: "file_too_large" });
    expect((await head(urls[0] ?? "")).status).toBe(200);
  });

  test("of empty parts is an empty file", async () => {
    const response = await final([await partial(Buffer.alloc(0)), await partial(Buffer.alloc(0))]);
    expect([response.status, response.headers.get("upload-offset")]).toEqual([201, "0"]);
    const url = response.headers.get("location") ?? "";
    expect(await recordAt(url)).toMatchObject({ status: "complete", sizeBytes: 0, sha256: sha256("") });
    expect((await contentAt(url)).length).toBe(0);
  });

  test("of many parts is rewritten into one piece, and stays readable", async () => {
    const urls: string[] = [];
    for (let at = 0; at < 40; at += 1) urls.push(await partial(bytes.subarray(at * 2_500, (at + 1) * 2_500)));
    const url = (await final(urls.map((one) => new URL(one).pathname))).headers.get("location") ?? "";
    expect((await contentAt(url)).equals(bytes)).toBe(true);
    const file = await server.engine.openOwn("local", await handleAt(url));
    expect(await file.path()).toMatch(/longshore-http/);
    expect((await contentAt(url)).equals(bytes)).toBe(true);
    expect(await server.engine.verify(() => {})).toMatchObject({ faults: 0 });
  });

  test("whose declared digest takes longer than a request waits answers 423 with its URL, and the same request asks again", async () => {
    const slow = await startFilesServer({
      wrapEngine: (engine) =>
        new Proxy(engine, {
          get(target, name) {
            const value: unknown = Reflect.get(target, name, target);
            if (typeof value !== "function") return value;
            if (name !== "concatenate") return value.bind(target);
            return async (...args: Parameters<TransferEngine["concatenate"]>) => {
              const made = await target.concatenate(...args);
              return made.created ? { ...made, transfer: { ...made.transfer, status: "verifying" } } : made;
            };
          },
        }),
    });
    try {
      const part = await created(slow.url, { "Upload-Length": "3", "Upload-Concat": "partial" });
      await patch(part, 0, "abc");
      const ask = (): Promise<Response> =>
        post(slow.url, {
          "Upload-Concat": `final;${part}`,
          "Upload-Metadata": `sha256 ${base64(sha256("abc"))}`,
        });
      const first = await ask();
      expect(first.status).toBe(423);
      expect(fieldsOf(first)).toMatchObject({
        "retry-after": "1",
        location: expect.stringContaining("/files/"),
      });
      const second = await ask();
      expect(second.status).toBe(201);
      expect(second.headers.get("longshore-handle")).toBe(first.headers.get("longshore-handle"));
    } finally {
      await slow.close();
    }
  });
});
