/** Offset retrieval, upload append and cancellation of draft-ietf-httpbis-resumable-upload. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FilesServer, RawConnection, startFilesServer } from "../support/http-server.ts";
import { append, begin, begun, look, partialMedia, sha256Field } from "../support/resumable-requests.ts";
import {
  base64,
  created,
  fieldsOf,
  inChunks,
  patch,
  problemOf,
  sha256,
  someBytes,
} from "../support/tus-requests.ts";
import { waitUntil } from "../support/wait-until.ts";

let server: FilesServer;
beforeAll(async () => {
  server = await startFilesServer();
});
afterAll(() => server.close());

const bytes = someBytes(100_000);
const registry = "https://iana.org/assignments/http-problem-types";
const offsetOf = async (url: string) => (await look(url)).headers.get("upload-offset");

describe("offset retrieval", () => {
  test("by HEAD answers 200 and by GET 204, with offset, completeness, length and limits, never cached", async () => {
    const url = await begun(server.url, { "Upload-Length": "100000" });
    await append(url, 0, false, bytes.subarray(0, 25_000));
    for (const [method, status] of [
      ["HEAD", 200],
      ["GET", 204],
    ] as const) {
      const response = await look(url, method);
      expect(response.status).toBe(status);
      expect(fieldsOf(response)).toMatchObject({
        "upload-offset": "25000",
        "upload-complete": "?0",
        "upload-length": "100000",
        "upload-limit": expect.stringMatching(/^max-size=1099511627776, max-age=86\d{3}$/),
        "cache-control": "no-store",
        "longshore-status": "receiving",
        // A bare question is answered for both protocols.
        "tus-resumable": "1.0.0",
        "tus-version": "1.0.0",
      });
      expect(await response.text()).toBe("");
    }
  });

  test("says no length where none was told, and that a complete upload is complete", async () => {
    const url = await begun(server.url);
    expect((await look(url)).headers.get("upload-length")).toBeNull();
    await append(url, 0, true, bytes);
    expect(fieldsOf(await look(url))).toMatchObject({
      "upload-complete": "?1",
      "upload-length": "100000",
      "upload-offset": "100000",
      "upload-limit": expect.stringMatching(/max-age=86\d{3}$/),
    });
  });

  test("of what is unknown or past its time answers problem documents", async () => {
    const response = await look(`${server.url}/files/${"a".repeat(40)}`, "GET");
    expect(response.status).toBe(404);
    expect(await problemOf(response)).toMatchObject({ code: "unknown_handle", status: 404 });
    const short = await startFilesServer({ limits: { uploadTtlMs: 1 } });
    try {
      const url = await begun(short.url);
      await waitUntil(async () => (await look(url)).status === 410);
      const gone = await look(url, "GET");
      expect(gone.status).toBe(410);
      expect(fieldsOf(gone)).toMatchObject({
        "longshore-handle": expect.stringMatching(/^fh_/),
        "longshore-status": "expired",
      });
      expect(gone.headers.get("upload-offset")).toBeNull();
    } finally {
      await short.close();
    }
  });

  test("ends a running append, and the offset told is the one that is taken next", async () => {
    const url = await begun(server.url);
    const raw = new RawConnection(server.port);
    raw.head(
      `PATCH ${new URL(url).pathname} HTTP/1.1`,
      "Host: x",
      `Content-Type: ${partialMedia}`,
      "Upload-Offset: 0",
      "Upload-Complete: ?1",
      "Content-Length: 100000",
      "Expect: 100-continue",
    );
    await raw.until(/100 Continue/);
    raw.write(bytes.subarray(0, 60_000));
    await waitUntil(() => raw.socket.writableLength === 0);
    const offset = Number(await offsetOf(url));
    expect(await raw.until(/HTTP\/1\.1 423 /)).toMatch(/Upload-Complete: \?0/i);
    expect((await append(url, offset, true, bytes.subarray(offset))).status).toBe(200);
    raw.end();
  });
});

describe("upload append", () => {
  test("in parts answers 204 with ?0 each time, and the last one 200 with the final answer", async () => {
    const url = await begun(server.url);
    const first = await append(url, 0, false, bytes.subarray(0, 10));
    expect(first.status).toBe(204);
    expect(fieldsOf(first)).toMatchObject({ "upload-complete": "?0", "upload-offset": "10" });
    expect((await append(url, 10, false, inChunks(bytes.subarray(10, 20)))).status).toBe(204);
    const last = await append(url, 20, true, inChunks(bytes.subarray(20)), {
      "Repr-Digest": sha256Field(bytes),
    });
    expect(last.status).toBe(200);
    expect(fieldsOf(last)).toMatchObject({
      "upload-complete": "?1",
      "upload-offset": "100000",
      "repr-digest": sha256Field(bytes),
    });
    expect((await last.json()) as unknown).toMatchObject({
      status: "complete",
      size: 100_000,
      sha256: sha256(bytes),
    });
  });

  test("without content completes what is here, and repeats the final answer after it was lost", async () => {
    const url = await begun(server.url);
    await append(url, 0, false, bytes);
    for (let time = 0; time < 2; time += 1) {
      const response = await append(url, 100_000, true);
      expect([response.status, response.headers.get("upload-complete")]).toEqual([200, "?1"]);
      expect((await response.json()) as unknown).toMatchObject({ sha256: sha256(bytes) });
    }
  });

  test("at another offset answers 409 with both offsets and ?0, and stores nothing", async () => {
    const url = await begun(server.url);
    await append(url, 0, false, "abcde");
    for (const offset of [0, 4, 6]) {
      const response = await append(url, offset, true, "x");
      expect(response.status).toBe(409);
      expect(fieldsOf(response)).toMatchObject({ "upload-offset": "5", "upload-complete": "?0" });
      expect(await problemOf(response)).toMatchObject({
        type: `${registry}#mismatching-upload-offset`,
        title: "Mismatching Upload Offset",
        status: 409,
        "expected-offset": 5,
        "provided-offset": offset,
        code: "offset_mismatch",
        partial: { cursor: 5 },
      });
    }
    expect(await offsetOf(url)).toBe("5");
  });

  test("to a complete upload is refused, and nothing changes", async () => {
    const url = await begun(server.url);
    await append(url, 0, true, bytes);
    const more = await append(url, 100_000, false, "x");
    expect([more.status, more.headers.get("upload-complete")]).toEqual([413, "?0"]);
    // As the last body it would tell another length.
    expect((await append(url, 100_000, true, "x")).status).toBe(400);
    expect((await append(url, 0, true, bytes)).status).toBe(409);
    expect(fieldsOf(await look(url))).toMatchObject({ "upload-complete": "?1", "upload-offset": "100000" });
  });

  test("that tells another length than before answers 400 inconsistent-upload-length", async () => {
    const url = await begun(server.url, { "Upload-Length": "100" });
    for (const [complete, body, fields] of [
      [false, "abc", { "Upload-Length": "99" }],
      [true, "abc", {}],
      [true, "abc", { "Upload-Length": "100" }],
      [true, inChunks("abc"), { "Upload-Length": "101" }],
    ] as const) {
      const response = await append(url, 0, complete, body, fields as Record<string, string>);
      expect(response.status).toBe(400);
      expect(fieldsOf(response)).toMatchObject({ "upload-complete": "?0", "upload-offset": "0" });
      expect(await problemOf(response)).toMatchObject({ type: `${registry}#inconsistent-upload-length` });
    }
    expect(await offsetOf(url)).toBe("0");
  });

  test("that runs over the length is refused, also in chunks, and the offset never passes it", async () => {
    const url = await begun(server.url, { "Upload-Length": "10" });
    expect((await append(url, 0, false, inChunks("abcdefghijk"))).status).toBe(413);
    expect((await append(url, 0, false, "abcdefghijk")).status).toBe(413);
    expect(Number(await offsetOf(url))).toBeLessThanOrEqual(10);
  });

  test("learns the length from Upload-Length or from the last body", async () => {
    const url = await begun(server.url);
    await append(url, 0, false, "ab", { "Upload-Length": "6" });
    expect((await look(url)).headers.get("upload-length")).toBe("6");
    const other = await begun(server.url);
    const raw = new RawConnection(server.port);
    raw.head(
      `PATCH ${new URL(other).pathname} HTTP/1.1`,
      "Host: x",
      `Content-Type: ${partialMedia}`,
      "Upload-Offset: 0",
      "Upload-Complete: ?1",
      "Content-Length: 6",
    );
    raw.write("abc");
    await waitUntil(async () => (await look(other)).headers.get("upload-length") === "6");
    raw.end();
  });

  test("with a wrong Content-Digest answers 400 and appends nothing", async () => {
    const url = await begun(server.url);
    await append(url, 0, false, "abc");
    const response = await append(url, 3, false, "def", { "Content-Digest": sha256Field("xyz") });
    expect(response.status).toBe(400);
    expect(fieldsOf(response)).toMatchObject({ "upload-offset": "3", "upload-complete": "?0" });
    expect(await problemOf(response)).toMatchObject({ code: "checksum_mismatch" });
    expect((await append(url, 3, true, "def", { "Content-Digest": sha256Field("def") })).status).toBe(200);
  });

  test("with a wrong final Repr-Digest answers 422 with ?1, now and later, and the offset stays at the end", async () => {
    const url = await begun(server.url);
    await append(url, 0, false, bytes.subarray(0, 10), { "Repr-Digest": sha256Field(bytes.subarray(0, 10)) });
    const response = await append(url, 10, true, bytes.subarray(10), { "Repr-Digest": sha256Field("other") });
    expect(response.status).toBe(422);
    expect(fieldsOf(response)).toMatchObject({
      "upload-complete": "?1",
      "upload-offset": "100000",
      "longshore-status": "mismatch",
    });
    expect(await problemOf(response)).toMatchObject({
      code: "checksum_mismatch",
      repair: { tool: "upload_resume" },
    });
    expect((await append(url, 100_000, true)).status).toBe(422);
    const looked = await look(url);
    expect([looked.status, looked.headers.get("upload-complete")]).toEqual([422, "?1"]);
    expect((await append(url, 0, false, "x")).status).toBe(422);
  });

  test("with a wrong final Repr-Digest answers 422 for a few bytes as for many", async () => {
    const url = await begun(server.url, { "Upload-Length": "3" });
    const response = await append(url, 0, true, "abc", { "Repr-Digest": sha256Field("abd") });
    expect([response.status, response.headers.get("longshore-status")]).toEqual([422, "mismatch"]);
    const right = await begun(server.url, { "Upload-Length": "3" });
    expect((await append(right, 0, true, "abc", { "Repr-Digest": sha256Field("abc") })).status).toBe(200);
  });

  test("with a Repr-Digest that contradicts an earlier one answers 400, and one of a stored file 422", async () => {
    const url = await begun(server.url, { "Repr-Digest": sha256Field(bytes) });
    expect((await append(url, 0, true, bytes, { "Repr-Digest": sha256Field("other") })).status).toBe(400);
    expect((await append(url, 0, true, bytes, { "Repr-Digest": sha256Field(bytes) })).status).toBe(200);
    const late = await append(url, 100_000, true, undefined, { "Repr-Digest": sha256Field("other") });
    expect(late.status).toBe(422);
    expect((await append(url, 100_000, true)).status).toBe(200);
  });

  test.each([
    ["another media type", { "Content-Type": "application/octet-stream" }, 415, "unsupported_media_type"],
    ["no offset", { "Upload-Offset": "x" }, 400, "invalid_param"],
    ["a decimal offset", { "Upload-Offset": "0.0" }, 400, "invalid_param"],
    ["a negative offset", { "Upload-Offset": "-1" }, 400, "invalid_param"],
    ["no Upload-Complete", { "Upload-Complete": "yes" }, 400, "invalid_param"],
  ])("with %s is refused with %j", async (_name, fields, status, code) => {
    const url = await begun(server.url);
    const response = await append(url, 0, true, "abc", fields as Record<string, string>);
    expect([response.status, response.headers.get("upload-complete")]).toEqual([status, "?0"]);
    expect(await problemOf(response)).toMatchObject({ code });
    expect(await offsetOf(url)).toBe("0");
  });

  test("to what is unknown answers 404 as a problem document", async () => {
    const response = await append(`${server.url}/files/${"a".repeat(40)}`, 0, true, "abc");
    expect(response.status).toBe(404);
    expect(await problemOf(response)).toMatchObject({ code: "unknown_handle" });
  });

  test("without its media type and its fields answers 412 with Tus-Version", async () => {
    const url = await begun(server.url);
    const response = await fetch(url, { method: "PATCH", headers: { "Upload-Offset": "0" }, body: "abc" });
    expect([response.status, response.headers.get("tus-version")]).toEqual([412, "1.0.0"]);
  });
});

describe("one upload, several protocols", () => {
  test("begun by tus it is gone on with by PATCH of the draft, and the other way round", async () => {
    const metadata = `filename ${base64("a.bin")}`;
    const tus = await created(server.url, { "Upload-Length": "6", "Upload-Metadata": metadata });
    await patch(tus, 0, "abc");
    const last = await append(tus, 3, true, "def");
    expect([last.status, last.headers.get("upload-complete")]).toEqual([200, "?1"]);
    expect((await look(tus)).headers.get("upload-metadata")).toBe(metadata);
    const response = await begin(server.url, false, { "Upload-Length": "6" }, "abc");
    const draft = response.headers.get("location") ?? "";
    expect((await patch(draft, 3, "def")).headers.get("longshore-status")).toBe("complete");
  });
});

describe("cancellation", () => {
  test("answers 204, and the upload is gone", async () => {
    const url = await begun(server.url);
    const response = await fetch(url, { method: "DELETE" });
    expect([response.status, response.headers.get("longshore-status")]).toEqual([204, "deleted"]);
    expect((await look(url)).status).toBe(404);
    expect((await append(url, 0, true, "abc")).status).toBe(404);
  });
});
