/** Upload creation of draft-ietf-httpbis-resumable-upload. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FilesServer, startFilesServer } from "../support/http-server.ts";
import { append, begin, begun, look, partialMedia, sha256Field } from "../support/resumable-requests.ts";
import { fieldsOf, inChunks, problemOf, sha256, someBytes } from "../support/tus-requests.ts";

let server: FilesServer;
beforeAll(async () => {
  server = await startFilesServer({ limits: { maxFileBytes: 1 << 20 } });
});
afterAll(() => server.close());

const bytes = someBytes(100_000);
const registry = "https://iana.org/assignments/http-problem-types";

describe("POST with Upload-Complete: ?1", () => {
  test("is the whole file in one request: 200 with what became of it, and where it is", async () => {
    const response = await begin(
      server.url,
      true,
      {
        "Content-Type": "image/png",
        "Content-Disposition": `inline; filename="photo.png"; filename*=UTF-8''gr%C3%BC%C3%9Fe.png`,
        "Upload-Length": "100000",
        "Repr-Digest": sha256Field(bytes),
        "Content-Digest": sha256Field(bytes),
      },
      bytes,
    );
    expect(response.status).toBe(200);
    const url = response.headers.get("location") ?? "";
    expect(fieldsOf(response)).toMatchObject({
      location: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/files\/[\w-]{40}$/),
      "upload-complete": "?1",
      "upload-offset": "100000",
      "upload-limit": expect.stringMatching(/^max-size=1048576, max-age=\d+$/),
      "longshore-status": "complete",
      "repr-digest": sha256Field(bytes),
      "content-type": "application/json",
    });
    expect(response.headers.get("tus-resumable")).toBeNull();
    const handle = response.headers.get("longshore-handle") ?? "";
    expect(await response.json()).toEqual({
      handle,
      status: "complete",
      offset: 100_000,
      size: 100_000,
      sha256: sha256(bytes),
    });
    expect(await server.engine.status("local", handle)).toMatchObject({
      filename: "größe.png".replace("ö", "ü"),
      contentType: "image/png",
      declaredSha256: sha256(bytes),
    });
    expect((await look(url)).headers.get("upload-complete")).toBe("?1");
  });

  test("may come in chunks, with and without Upload-Length", async () => {
    for (const fields of [{}, { "Upload-Length": "100000" }] as Record<string, string>[]) {
      const response = await begin(server.url, true, fields, inChunks(bytes));
      expect([response.status, response.headers.get("upload-complete")]).toEqual([200, "?1"]);
      expect((await response.json()) as unknown).toMatchObject({ size: 100_000, sha256: sha256(bytes) });
    }
  });

  test("without content is an empty file", async () => {
    const response = await begin(server.url, true, {});
    expect([response.status, response.headers.get("upload-complete")]).toEqual([200, "?1"]);
    expect((await response.json()) as unknown).toMatchObject({
      status: "complete",
      size: 0,
      sha256: sha256(""),
    });
  });

  test("with two lengths that differ answers 400 inconsistent-upload-length and creates nothing", async () => {
    for (const body of [bytes, undefined]) {
      const response = await begin(server.url, true, { "Upload-Length": "99999" }, body);
      expect([response.status, response.headers.get("location")]).toEqual([400, null]);
      expect(response.headers.get("upload-complete")).toBe("?0");
      expect(await problemOf(response)).toMatchObject({
        type: `${registry}#inconsistent-upload-length`,
        status: 400,
        code: "size_mismatch",
        retryable: true,
      });
    }
  });

  test("of a wrong Repr-Digest answers 422 with Upload-Complete: ?1, and HEAD does not call it good", async () => {
    const response = await begin(server.url, true, { "Repr-Digest": sha256Field("other") }, bytes);
    expect(response.status).toBe(422);
    expect(fieldsOf(response)).toMatchObject({
      "upload-complete": "?1",
      "upload-offset": "100000",
      "longshore-handle": expect.stringMatching(/^fh_/),
    });
    expect(await problemOf(response)).toMatchObject({ code: "checksum_mismatch" });
    const looked = await look(response.headers.get("location") ?? "");
    expect([looked.status, looked.headers.get("upload-complete")]).toEqual([422, "?1"]);
  });

  test("of a wrong Content-Digest answers 400, and the upload can be gone on with from 0", async () => {
    const response = await begin(server.url, true, { "Content-Digest": sha256Field("other") }, bytes);
    expect(response.status).toBe(400);
    expect(fieldsOf(response)).toMatchObject({ "upload-complete": "?0", "upload-offset": "0" });
    const url = response.headers.get("location") ?? "";
    expect((await append(url, 0, true, bytes)).status).toBe(200);
  });

  test("of more than a file may have answers 413 with the limit", async () => {
    const response = await begin(server.url, true, { "Upload-Length": "1048577" }, inChunks("abc"));
    expect([response.status, response.headers.get("upload-complete")]).toEqual([413, "?0"]);
    expect(response.headers.get("upload-limit")).toMatch(/^max-size=1048576/);
    expect(await problemOf(response)).toMatchObject({ code: "file_too_large" });
    expect((await begin(server.url, true, {}, inChunks(someBytes(1_048_577)))).status).toBe(413);
  });
});

describe("POST with Upload-Complete: ?0", () => {
  test("answers 201 with the URL, the offset and the limits, with and without first bytes", async () => {
    for (const body of [undefined, bytes.subarray(0, 40_000), inChunks(bytes.subarray(0, 40_000))]) {
      const response = await begin(server.url, false, { "Upload-Length": "100000" }, body);
      const offset = body === undefined ? 0 : 40_000;
      expect(response.status).toBe(201);
      expect(fieldsOf(response)).toMatchObject({
        "upload-complete": "?0",
        "upload-offset": String(offset),
        "upload-limit": expect.stringMatching(/^max-size=1048576, max-age=\d+$/),
        "longshore-status": "receiving",
      });
      const last = await append(response.headers.get("location") ?? "", offset, true, bytes.subarray(offset));
      expect([last.status, last.headers.get("longshore-status")]).toEqual([200, "complete"]);
    }
  });

  test("that reaches the announced length is complete, as on every door", async () => {
    const response = await begin(server.url, false, { "Upload-Length": "100000" }, bytes);
    expect([response.status, response.headers.get("upload-complete")]).toEqual([200, "?1"]);
    const empty = await begin(server.url, false, { "Upload-Length": "0" });
    expect([empty.status, empty.headers.get("upload-complete")]).toEqual([200, "?1"]);
  });

  test("keeps the Repr-Digest of the whole for the end", async () => {
    const url = await begun(server.url, { "Repr-Digest": sha256Field(bytes) });
    expect((await append(url, 0, true, someBytes(100_000, 9))).status).toBe(422);
    const right = await begun(server.url, { "Repr-Digest": sha256Field(bytes) });
    expect((await append(right, 0, true, bytes)).status).toBe(200);
  });
});

describe("which protocol a creation speaks", () => {
  test.each(["?2", "1", "true", "?1 ?0", "?1, ?1", "", "(?1)", "?"])(
    "Upload-Complete %j is no boolean and counts as none: 412",
    async (value) => {
      const response = await fetch(`${server.url}/files`, {
        method: "POST",
        headers: { "Upload-Complete": value },
        body: "abc",
      });
      expect(response.status).toBe(412);
      expect(await problemOf(response)).toMatchObject({ code: "unsupported_version", retryable: true });
    },
  );

  test("a boolean with parameters is one", async () => {
    const response = await fetch(`${server.url}/files`, {
      method: "POST",
      headers: { "Upload-Complete": "?1;a=1" },
      body: "abc",
    });
    expect(response.status).toBe(200);
  });

  test("Tus-Resumable comes first, whatever else there is", async () => {
    const response = await begin(server.url, true, { "Tus-Resumable": "1.0.0", "Upload-Length": "5" });
    expect([response.status, response.headers.get("tus-resumable")]).toEqual([201, "1.0.0"]);
    expect(response.headers.get("upload-complete")).toBeNull();
  });

  test("the media type alone is of this protocol, which then misses Upload-Complete", async () => {
    const response = await fetch(`${server.url}/files`, {
      method: "POST",
      headers: { "Content-Type": partialMedia },
      body: "abc",
    });
    expect(response.status).toBe(400);
    expect(await problemOf(response)).toMatchObject({ code: "invalid_param", param: "Upload-Complete" });
  });

  test.each(["5.0", "-1", "abc", "1e3", "9999999999999999", '"5"', "05x"])(
    "Upload-Length %j is no length and counts as none",
    async (value) => {
      const response = await begin(server.url, false, { "Upload-Length": value });
      expect(response.status).toBe(201);
      expect((await look(response.headers.get("location") ?? "")).headers.get("upload-length")).toBeNull();
    },
  );

  test("a caller who may not create is refused before anything is made", async () => {
    const { TransferError } = await import("../../src/errors.ts");
    const closed = await startFilesServer({
      authenticate: async () => {
        throw new TransferError("unauthorized", "No key.");
      },
    });
    try {
      const response = await begin(closed.url, true, {}, "abc");
      expect([response.status, response.headers.get("upload-complete")]).toEqual([401, "?0"]);
      expect(response.headers.get("location")).toBeNull();
    } finally {
      await closed.close();
    }
  });
});

describe("PUT with Upload-Complete on an upload URL", () => {
  const put = (url: string, fields: Record<string, string>, body: Uint8Array<ArrayBuffer>) =>
    fetch(url, { method: "PUT", headers: fields, body });

  test("?1 is the whole file, and says where it could be gone on with", async () => {
    const url = await begun(server.url);
    const response = await put(url, { "Upload-Complete": "?1", "Repr-Digest": sha256Field(bytes) }, bytes);
    expect(response.status).toBe(200);
    expect(fieldsOf(response)).toMatchObject({
      location: url,
      "upload-complete": "?1",
      "longshore-status": "complete",
    });
  });

  test("?0 is the beginning, and PATCH goes on", async () => {
    const url = await begun(server.url);
    const response = await put(
      url,
      { "Upload-Complete": "?0", "Upload-Length": "100000" },
      bytes.subarray(0, 10),
    );
    expect([response.status, response.headers.get("upload-complete")]).toEqual([201, "?0"]);
    expect((await append(url, 10, true, bytes.subarray(10))).status).toBe(200);
  });

  test("with two lengths that differ answers 400 inconsistent-upload-length", async () => {
    const url = await begun(server.url);
    const response = await put(url, { "Upload-Complete": "?1", "Upload-Length": "5" }, bytes);
    expect(response.status).toBe(400);
    expect(await problemOf(response)).toMatchObject({ type: `${registry}#inconsistent-upload-length` });
  });

  test("a plain PUT may bring the Repr-Digest of the file: wrong answers 422, and nothing of the draft is said", async () => {
    const url = await begun(server.url);
    const right = await put(url, { "Repr-Digest": sha256Field(bytes) }, bytes);
    expect([right.status, right.headers.get("upload-complete"), right.headers.get("location")]).toEqual([
      200,
      null,
      null,
    ]);
    expect((await put(url, { "Repr-Digest": sha256Field("other") }, bytes)).status).toBe(422);
    expect((await put(await begun(server.url), { "Repr-Digest": sha256Field("other") }, bytes)).status).toBe(
      422,
    );
  });
});
