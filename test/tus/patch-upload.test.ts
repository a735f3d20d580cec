import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FilesServer, startFilesServer } from "../support/http-server.ts";
import {
  base64,
  created,
  fieldsOf,
  head,
  inChunks,
  patch,
  problemOf,
  sha256,
  someBytes,
  tusHeaders,
} from "../support/tus-requests.ts";

let server: FilesServer;
beforeAll(async () => {
  server = await startFilesServer({ limits: { maxFileBytes: 1 << 20 } });
});
afterAll(() => server.close());

const offsetOf = async (url: string): Promise<string | null> =>
  (await head(url)).headers.get("upload-offset");

describe("PATCH", () => {
  test("appends piece by piece and says offset, status and digest each time", async () => {
    const bytes = someBytes(300_000);
    const url = await created(server.url, { "Upload-Length": "300000" });
    const first = await patch(url, 0, bytes.subarray(0, 100_000));
    expect(first.status).toBe(204);
    expect(fieldsOf(first)).toMatchObject({
      "upload-offset": "100000",
      "longshore-status": "receiving",
      "longshore-handle": expect.stringMatching(/^fh_/),
      "upload-expires": expect.stringMatching(/ GMT$/),
      "tus-resumable": "1.0.0",
    });
    expect(first.headers.get("repr-digest")).toBeNull();
    const last = await patch(url, 100_000, bytes.subarray(100_000));
    expect(last.status).toBe(204);
    expect(fieldsOf(last)).toMatchObject({
      "upload-offset": "300000",
      "longshore-status": "complete",
      "repr-digest": `sha-256=:${Buffer.from(sha256(bytes), "hex").toString("base64")}:`,
    });
    expect(last.headers.get("upload-expires")).toBeNull();
  });

  test("with a stale offset answers 409, says the true offset and stores nothing", async () => {
    const url = await created(server.url, { "Upload-Length": "10" });
    await patch(url, 0, "abcde");
    for (const offset of [0, 4, 6, 10, 11, 9007199254740991]) {
      const response = await patch(url, offset, "x");
      expect(response.status).toBe(409);
      expect(fieldsOf(response)).toMatchObject({ "upload-offset": "5", "longshore-status": "receiving" });
      expect(await problemOf(response)).toMatchObject({
        type: "urn:longshore:error:offset_mismatch",
        status: 409,
        code: "offset_mismatch",
        retryable: true,
        partial: { cursor: 5 },
      });
    }
    expect(await offsetOf(url)).toBe("5");
    expect((await patch(url, 5, "fghij")).headers.get("longshore-status")).toBe("complete");
  });

  test.each([
    ["no offset", { "Upload-Offset": "" }, "Upload-Offset"],
    ["a negative offset", { "Upload-Offset": "-1" }, "Upload-Offset"],
    ["an offset in words", { "Upload-Offset": "end" }, "Upload-Offset"],
    ["an offset beyond 2^53", { "Upload-Offset": "9007199254740993" }, "Upload-Offset"],
    ["a length that is none", { "Upload-Length": "x" }, "Upload-Length"],
  ])("with %s answers 400 with the true offset", async (_name, fields: Record<string, string>, param) => {
    const url = await created(server.url, { "Upload-Length": "10" });
    await patch(url, 0, "abc");
    const response = await patch(url, 3, "d", fields);
    expect(response.status).toBe(400);
    expect(fieldsOf(response)).toMatchObject({ "upload-offset": "3", "longshore-status": "receiving" });
    expect(await problemOf(response)).toMatchObject({ code: "invalid_param", param });
  });

  test("without Upload-Offset answers 400", async () => {
    const url = await created(server.url, { "Upload-Length": "10" });
    const response = await fetch(url, {
      method: "PATCH",
      headers: { ...tusHeaders, "Content-Type": "application/offset+octet-stream" },
      body: "abc",
    });
    expect(response.status).toBe(400);
    expect(await problemOf(response)).toMatchObject({ param: "Upload-Offset" });
  });

  test.each([
    "text/plain",
    "application/octet-stream",
    "application/offset+octet-streams",
    "application/partial-upload-x",
  ])("of type %s answers 415 with the true offset and stores nothing", async (type) => {
    const url = await created(server.url, { "Upload-Length": "10" });
    await patch(url, 0, "abc");
    const response = await patch(url, 3, "d", { "Content-Type": type });
    expect(response.status).toBe(415);
    expect(response.headers.get("upload-offset")).toBe("3");
    expect(await offsetOf(url)).toBe("3");
  });

  test("of the tus type with parameters, in any case of letters, is taken", async () => {
    const url = await created(server.url, { "Upload-Length": "10" });
    expect(
      (await patch(url, 0, "abc", { "Content-Type": "Application/Offset+Octet-Stream; charset=binary" }))
        .status,
    ).toBe(204);
  });

  test("longer than what is missing answers 413 with the true offset and stores nothing", async () => {
    const url = await created(server.url, { "Upload-Length": "5" });
    await patch(url, 0, "ab");
    const response = await patch(url, 2, "cdefgh");
    expect(response.status).toBe(413);
    expect(response.headers.get("upload-offset")).toBe("2");
    expect(await problemOf(response)).toMatchObject({ code: "size_mismatch" });
    expect(await offsetOf(url)).toBe("2");
  });

  test("in chunks appends, and answers 413 when the chunks are too many", async () => {
    const url = await created(server.url, { "Upload-Length": "6" });
    const good = await patch(url, 0, inChunks("ab", "cd"));
    expect([good.status, good.headers.get("upload-offset")]).toEqual([204, "4"]);
    const bad = await patch(url, 4, inChunks("efghijkl"));
    expect(bad.status).toBe(413);
    const offset = Number(bad.headers.get("upload-offset"));
    expect(offset).toBeLessThanOrEqual(6);
    expect(await offsetOf(url)).toBe(String(offset));
  });

  test("that is empty says the offset, before the end and after it", async () => {
    const url = await created(server.url, { "Upload-Length": "3" });
    const early = await patch(url, 0, "");
    expect([early.status, early.headers.get("upload-offset")]).toEqual([204, "0"]);
    const done = await patch(url, 0, "abc");
    const again = await patch(url, 3, "");
    expect(again.status).toBe(204);
    for (const field of ["upload-offset", "longshore-status", "longshore-handle", "repr-digest"]) {
      expect(again.headers.get(field)).toBe(done.headers.get(field));
    }
    const beyond = await patch(url, 3, "d");
    expect(beyond.status).toBe(413);
    expect(beyond.headers.get("upload-offset")).toBe("3");
  });

  test("tells a deferred length, once", async () => {
    const url = await created(server.url, { "Upload-Defer-Length": "1" });
    expect(fieldsOf(await head(url))).toMatchObject({ "upload-defer-length": "1", "upload-offset": "0" });
    expect((await patch(url, 0, "abc")).status).toBe(204);
    const told = await patch(url, 3, "de", { "Upload-Length": "7" });
    expect([told.status, told.headers.get("upload-offset")]).toEqual([204, "5"]);
    const after = fieldsOf(await head(url));
    expect(after).toMatchObject({ "upload-length": "7", "upload-offset": "5" });
    expect(after["upload-defer-length"]).toBeUndefined();
    const other = await patch(url, 5, "fg", { "Upload-Length": "8" });
    expect(other.status).toBe(413);
    expect(other.headers.get("upload-offset")).toBe("5");
    expect((await patch(url, 5, "fg", { "Upload-Length": "7" })).headers.get("longshore-status")).toBe(
      "complete",
    );
  });

  test("tells a deferred length with an empty body at the end, which completes", async () => {
    const url = await created(server.url, { "Upload-Defer-Length": "1" });
    await patch(url, 0, "abc");
    const done = await patch(url, 3, "", { "Upload-Length": "3" });
    expect([done.status, done.headers.get("longshore-status")]).toEqual([204, "complete"]);
  });

  test("tells a deferred length that is too large or too small: 413", async () => {
    const url = await created(server.url, { "Upload-Defer-Length": "1" });
    await patch(url, 0, "abc");
    for (const length of ["2", String((1 << 20) + 1), "9007199254740993"]) {
      const response = await patch(url, 3, "d", { "Upload-Length": length });
      expect(response.status).toBe(413);
      expect(response.headers.get("upload-offset")).toBe("3");
    }
  });

  test("with the last byte of a file of another digest answers 422, and so does everything after it", async () => {
    const url = await created(server.url, {
      "Upload-Length": "3",
      "Upload-Metadata": `sha256 ${base64(sha256("abd"))}`,
    });
    const response = await patch(url, 0, "abc");
    expect(response.status).toBe(422);
    expect(fieldsOf(response)).toMatchObject({ "upload-offset": "3", "longshore-status": "mismatch" });
    expect(response.headers.get("repr-digest")).toBeNull();
    expect(await problemOf(response)).toMatchObject({ code: "checksum_mismatch", partial: { cursor: 3 } });
    expect((await patch(url, 3, "")).status).toBe(422);
    const looked = await head(url);
    expect(looked.status).toBe(422);
    expect(fieldsOf(looked)).toMatchObject({ "upload-offset": "3", "longshore-status": "mismatch" });
  });

  test("with the right digest announced answers 204", async () => {
    const url = await created(server.url, {
      "Upload-Length": "3",
      "Upload-Metadata": `sha256 ${base64(sha256("abc"))}`,
    });
    expect((await patch(url, 0, "abc")).status).toBe(204);
  });

  test("of an unknown upload answers 404 and says nothing of an upload", async () => {
    for (const ticket of ["x", "A".repeat(40), "..%2f..%2fetc", "%00", "a".repeat(3000)]) {
      const response = await patch(`${server.url}/files/${ticket}`, 0, "abc");
      expect(response.status).toBe(404);
      expect(await problemOf(response)).toMatchObject({ code: "unknown_handle" });
      expect(response.headers.get("upload-offset")).toBeNull();
      expect(response.headers.get("longshore-handle")).toBeNull();
    }
  });
});
