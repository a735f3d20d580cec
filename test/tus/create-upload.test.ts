import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TransferError } from "../../src/errors.ts";
import { type FilesServer, startFilesServer } from "../support/http-server.ts";
import {
  base64,
  created,
  fieldsOf,
  head,
  offsetMedia,
  post,
  problemOf,
  sha256,
  someBytes,
} from "../support/tus-requests.ts";

let server: FilesServer;
beforeAll(async () => {
  server = await startFilesServer({ limits: { maxFileBytes: 1 << 30 } });
});
afterAll(() => server.close());

describe("POST /files", () => {
  test("answers 201 with an absolute Location, the handle, and when the upload expires", async () => {
    const response = await post(server.url, { "Upload-Length": "10" });
    expect(response.status).toBe(201);
    const fields = fieldsOf(response);
    expect(fields).toMatchObject({
      location: expect.stringMatching(new RegExp(`^${server.url}/files/[A-Za-z0-9_-]{32,}$`)),
      "tus-resumable": "1.0.0",
      "longshore-handle": expect.stringMatching(/^fh_[a-z2-7]{32}$/),
      "longshore-status": "receiving",
      "upload-offset": "0",
      "content-length": "0",
    });
    const inMs = new Date(fields["upload-expires"] ?? "").getTime() - Date.now();
    expect(fields["upload-expires"]).toMatch(
      /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/,
    );
    expect(Math.abs(inMs - 24 * 3_600_000)).toBeLessThan(60_000);
  });

  test("never takes the base of Location from the request", async () => {
    const response = await fetch(`${server.url}/files`, {
      method: "POST",
      headers: {
        "Tus-Resumable": "1.0.0",
        "Upload-Length": "1",
        "X-Forwarded-Host": "evil.example",
        Forwarded: "host=evil.example",
      },
    });
    expect(response.headers.get("location")).toMatch(new RegExp(`^${server.url}/files/`));
  });

  test("takes a trailing slash and a query for nothing", async () => {
    for (const path of ["/files/", "/files?a=b", "/files/?x"]) {
      const response = await fetch(`${server.url}${path}`, {
        method: "POST",
        headers: { "Tus-Resumable": "1.0.0", "Upload-Length": "1" },
      });
      expect(response.status).toBe(201);
      const location = response.headers.get("location") ?? "";
      expect((await head(`${location}?with=query&and=more`)).status).toBe(200);
    }
  });

  test("with a length of 0 is complete at once", async () => {
    const response = await post(server.url, { "Upload-Length": "0" });
    expect(response.status).toBe(201);
    expect(fieldsOf(response)).toMatchObject({
      "longshore-status": "complete",
      "repr-digest": "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:",
    });
    expect(response.headers.get("upload-expires")).toBeNull();
  });

  test.each([
    ["no length at all", {}, "Upload-Length"],
    ["both lengths", { "Upload-Length": "1", "Upload-Defer-Length": "1" }, "Upload-Defer-Length"],
    ["a deferred length of 0", { "Upload-Defer-Length": "0" }, "Upload-Defer-Length"],
    ["a deferred length of true", { "Upload-Defer-Length": "true" }, "Upload-Defer-Length"],
    ["a negative length", { "Upload-Length": "-1" }, "Upload-Length"],
    ["a length in words", { "Upload-Length": "ten" }, "Upload-Length"],
    ["a length with a sign", { "Upload-Length": "+1" }, "Upload-Length"],
    ["a length with an exponent", { "Upload-Length": "1e3" }, "Upload-Length"],
    ["a length with a leading zero", { "Upload-Length": "010" }, "Upload-Length"],
    ["two lengths", { "Upload-Length": "1, 2" }, "Upload-Length"],
    ["an empty length", { "Upload-Length": "" }, "Upload-Length"],
  ])("with %s answers 400 and names the field", async (_name, fields: Record<string, string>, param) => {
    const response = await post(server.url, fields);
    expect(response.status).toBe(400);
    expect(await problemOf(response)).toMatchObject({
      status: 400,
      code: "invalid_param",
      param,
      retryable: true,
    });
  });

  test.each([
    String((1 << 30) + 1),
    "9007199254740991",
    "9007199254740992",
    "9007199254740993",
    "9".repeat(400),
  ])("with a length of %s answers 413 file_too_large", async (length) => {
    const response = await post(server.url, { "Upload-Length": length });
    expect(response.status).toBe(413);
    expect(await problemOf(response)).toMatchObject({ code: "file_too_large" });
  });

  test("with exactly the greatest length is taken", async () => {
    expect((await post(server.url, { "Upload-Length": String(1 << 30) })).status).toBe(201);
  });

  test("with a body of the tus type stores it and says the offset", async () => {
    const bytes = someBytes(1000);
    const response = await post(server.url, { "Upload-Length": "1500", "Content-Type": offsetMedia }, bytes);
    expect(response.status).toBe(201);
    expect(fieldsOf(response)).toMatchObject({ "upload-offset": "1000", "longshore-status": "receiving" });
    const whole = await post(server.url, { "Upload-Length": "1000", "Content-Type": offsetMedia }, bytes);
    expect(fieldsOf(whole)).toMatchObject({
      "upload-offset": "1000",
      "longshore-status": "complete",
      "repr-digest": `sha-256=:${Buffer.from(sha256(bytes), "hex").toString("base64")}:`,
    });
    expect(whole.headers.get("upload-expires")).toBeNull();
  });

  test("with a body in chunks and a deferred length stores it", async () => {
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(someBytes(700));
        controller.close();
      },
    });
    const response = await fetch(`${server.url}/files`, {
      method: "POST",
      headers: { "Tus-Resumable": "1.0.0", "Upload-Defer-Length": "1", "Content-Type": offsetMedia },
      body,
      duplex: "half",
    } as RequestInit);
    expect(response.status).toBe(201);
    expect(fieldsOf(response)).toMatchObject({ "upload-offset": "700", "longshore-status": "receiving" });
  });

  test("with a body of another type answers 415 and creates nothing", async () => {
    const before = await server.engine.list("local", { status: null, limit: 1000, cursor: null });
    for (const type of [
      "text/plain",
      "application/json",
      "application/octet-stream",
      "application/x-www-form-urlencoded",
    ]) {
      const response = await post(server.url, { "Upload-Length": "3", "Content-Type": type }, "abc");
      expect(response.status).toBe(415);
      expect(await problemOf(response)).toMatchObject({ code: "unsupported_media_type" });
    }
    const after = await server.engine.list("local", { status: null, limit: 1000, cursor: null });
    expect(after.transfers).toHaveLength(before.transfers.length);
  });

  test("with another type but no body is taken", async () => {
    expect(
      (await post(server.url, { "Upload-Length": "3", "Content-Type": "application/json" }, "")).status,
    ).toBe(201);
  });

  test("with a body longer than the length answers 413 and creates nothing", async () => {
    const response = await post(server.url, { "Upload-Length": "3", "Content-Type": offsetMedia }, "abcdef");
    expect(response.status).toBe(413);
    expect(await problemOf(response)).toMatchObject({ code: "size_mismatch" });
    expect(response.headers.get("location")).toBeNull();
  });

  test("with a wrong digest of the whole body answers 422 and still says where the upload is", async () => {
    const response = await post(
      server.url,
      {
        "Upload-Length": "3",
        "Content-Type": offsetMedia,
        "Upload-Metadata": `sha256 ${base64("0".repeat(64))}`,
      },
      "abc",
    );
    expect(response.status).toBe(422);
    expect(await problemOf(response)).toMatchObject({ code: "checksum_mismatch" });
    const location = response.headers.get("location") ?? "";
    expect((await head(location)).status).toBe(422);
  });

  test("with a length of 0 and another digest than that of nothing answers 422 and still says where the upload is", async () => {
    const response = await post(server.url, {
      "Upload-Length": "0",
      "Upload-Metadata": `sha256 ${base64("0".repeat(64))}`,
    });
    expect(response.status).toBe(422);
    expect(response.headers.get("longshore-handle")).toMatch(/^fh_/);
    expect((await head(response.headers.get("location") ?? "")).status).toBe(422);
  });

  test("where the caller is unknown answers 401 with a challenge, before anything else is looked at", async () => {
    const guarded = await startFilesServer({
      authenticate: async (request) => {
        if (request.headers.get("authorization") === "Bearer good") return "anna";
        throw new TransferError("unauthorized", "Who are you?");
      },
    });
    try {
      const refused = await post(guarded.url, { "Upload-Length": "nonsense" });
      expect(refused.status).toBe(401);
      expect(refused.headers.get("www-authenticate")).toBe("Bearer");
      expect(await problemOf(refused)).toMatchObject({ code: "unauthorized" });
      const url = await created(guarded.url, { "Upload-Length": "5", Authorization: "Bearer good" });
      // The URL alone is enough from here on.
      expect((await head(url)).status).toBe(200);
      const mine = await guarded.engine.list("anna", { status: null, limit: 10, cursor: null });
      expect(mine.transfers).toHaveLength(1);
    } finally {
      await guarded.close();
    }
  });
});

describe("Upload-Metadata over HTTP", () => {
  test.each([
    ["filename d29ybGQ=,is_confidential"],
    [""],
    ["constructor YQ==,__proto__ Yg==,hasOwnProperty"],
    ["a YQ==  ,   b Yg=="],
    ["empty ,other YQ=="],
    ["na\u00efve\u00ff YQ=="],
    [`long ${base64("x".repeat(5000))}`],
  ])("%j comes back byte for byte", async (metadata) => {
    const url = await created(server.url, { "Upload-Length": "1", "Upload-Metadata": metadata });
    expect((await head(url)).headers.get("upload-metadata")).toBe(metadata);
  });

  test("comes back not at all where there was none", async () => {
    const url = await created(server.url, { "Upload-Length": "1" });
    expect((await head(url)).headers.get("upload-metadata")).toBeNull();
  });

  test.each(["a YQ==,a YQ==", "a b c", ",", "a !", "a YQ"])("%j answers 400", async (metadata) => {
    const response = await post(server.url, { "Upload-Length": "1", "Upload-Metadata": metadata });
    expect(response.status).toBe(400);
    expect(await problemOf(response)).toMatchObject({ code: "invalid_param", param: "Upload-Metadata" });
  });

  test("of more than 8 KiB answers 431", async () => {
    const response = await post(server.url, {
      "Upload-Length": "1",
      "Upload-Metadata": `a ${"A".repeat(8192)}`,
    });
    expect(response.status).toBe(431);
    expect(await problemOf(response)).toMatchObject({ code: "headers_too_large" });
  });

  test("gives the file its name and type, and the upload its digest in either case of letters", async () => {
    const bytes = someBytes(100);
    const digest = sha256(bytes).toUpperCase();
    const url = await created(server.url, {
      "Upload-Length": "100",
      "Upload-Metadata": `name ${base64("größe.txt")},type ${base64("text/plain")},sha256 ${base64(digest)}`,
    });
    const handle = (await head(url)).headers.get("longshore-handle") ?? "";
    expect(await server.engine.status("local", handle)).toMatchObject({
      filename: "größe.txt",
      contentType: "text/plain",
      declaredSha256: digest.toLowerCase(),
    });
  });

  test("with a digest that is none answers 400", async () => {
    const response = await post(server.url, {
      "Upload-Length": "1",
      "Upload-Metadata": `sha256 ${base64("beef")}`,
    });
    expect(response.status).toBe(400);
    expect(await problemOf(response)).toMatchObject({ code: "invalid_param", param: "sha256" });
  });
});
