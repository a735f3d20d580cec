import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FilesServer, RawConnection, startFilesServer } from "../support/http-server.ts";
import { describeWithProgram } from "../support/needs-program.ts";
import {
  base64,
  created,
  fieldsOf,
  head,
  inChunks,
  patch,
  problemOf,
  type RequestBody,
  sha256,
  someBytes,
} from "../support/tus-requests.ts";

let server: FilesServer;
beforeAll(async () => {
  server = await startFilesServer({ limits: { maxFileBytes: 1 << 24 } });
});
afterAll(() => server.close());

function put(url: string, body: RequestBody, fields: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: "PUT",
    headers: fields,
    body,
    ...(body instanceof ReadableStream && { duplex: "half" }),
  } as RequestInit);
}

const range = (text: string): Record<string, string> => ({ "Content-Range": text });
const offsetOf = async (url: string): Promise<string | null> =>
  (await head(url)).headers.get("upload-offset");

describe("PUT of a whole file", () => {
  test("answers 200 and JSON with handle, status, offset, size and sha256", async () => {
    const bytes = someBytes(100_000);
    const url = await created(server.url, { "Upload-Length": "100000" });
    const response = await put(url, bytes);
    expect(response.status).toBe(200);
    const fields = fieldsOf(response);
    expect(fields).toMatchObject({
      "content-type": "application/json",
      "upload-offset": "100000",
      "longshore-status": "complete",
      "repr-digest": `sha-256=:${createHash("sha256").update(bytes).digest("base64")}:`,
    });
    expect(await response.json()).toEqual({
      handle: fields["longshore-handle"],
      status: "complete",
      offset: 100_000,
      size: 100_000,
      sha256: sha256(bytes),
    });
  });

  test("under any name behind the ticket is the same upload", async () => {
    const url = await created(server.url, {
      "Upload-Length": "3",
      "Upload-Metadata": `filename ${base64("real.txt")}`,
    });
    const response = await put(`${url}/other%20name.bin?x=1`, "abc");
    expect(response.status).toBe(200);
    const { handle } = (await response.json()) as { handle: string };
    expect((await server.engine.status("local", handle)).filename).toBe("real.txt");
    expect((await head(`${url}/yet-another`)).headers.get("upload-offset")).toBe("3");
  });

  test("tells the size of an upload that had none, in one body of known length or in chunks", async () => {
    for (const body of ["abcdef", inChunks("abc", "def")]) {
      const url = await created(server.url, { "Upload-Defer-Length": "1" });
      const response = await put(url, body);
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({ status: "complete", size: 6, sha256: sha256("abcdef") });
    }
  });

  test("that is empty completes an empty upload and one without a size", async () => {
    for (const fields of [{ "Upload-Length": "0" }, { "Upload-Defer-Length": "1" }]) {
      const response = await put(await created(server.url, fields), "");
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({ status: "complete", size: 0, sha256: sha256("") });
    }
  });

  test("again, complete or not, ends right: the first bytes are compared, the rest is appended", async () => {
    const bytes = someBytes(50_000);
    const url = await created(server.url, { "Upload-Length": "50000" });
    await patch(url, 0, bytes.subarray(0, 20_000));
    for (const attempt of [1, 2, 3]) {
      const response = await put(url, attempt === 3 ? inChunks(bytes) : bytes);
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({
        status: "complete",
        offset: 50_000,
        sha256: sha256(bytes),
      });
    }
  });

  test("of another file over a part or the whole answers 409 checksum_mismatch and changes nothing", async () => {
    const bytes = someBytes(50_000);
    const other = Buffer.from(bytes);
    other[100] = (other[100] ?? 0) ^ 1;
    const url = await created(server.url, { "Upload-Length": "50000" });
    await patch(url, 0, bytes.subarray(0, 20_000));
    const early = await put(url, other);
    expect(early.status).toBe(409);
    expect(await problemOf(early)).toMatchObject({ code: "checksum_mismatch", partial: { cursor: 20_000 } });
    expect(early.headers.get("upload-offset")).toBe("20000");
    expect(await offsetOf(url)).toBe("20000");
    expect((await put(url, bytes)).status).toBe(200);
    const late = await put(url, other);
    expect(late.status).toBe(409);
    expect(late.headers.get("longshore-status")).toBe("complete");
    expect((await put(url, bytes)).status).toBe(200);
  });

  test.each([
    ["shorter", "ab"],
    ["longer", "abcd"],
  ])("that is %s than the size answers 413 with the true offset", async (_name, body) => {
    const url = await created(server.url, { "Upload-Length": "3" });
    const response = await put(url, body);
    expect(response.status).toBe(413);
    expect(await problemOf(response)).toMatchObject({ code: "size_mismatch" });
    expect(response.headers.get("upload-offset")).toBe("0");
  });

  test("that is longer or shorter than the complete upload answers 413 and does not ask for bytes, since none are missing", async () => {
    const url = await created(server.url, { "Upload-Length": "3" });
    expect((await put(url, "abc")).status).toBe(200);
    for (const body of ["abcd", "ab", inChunks("abcd"), inChunks("ab")]) {
      const response = await put(url, body);
      expect(response.status).toBe(413);
      const problem = await problemOf(response);
      expect(problem).toMatchObject({ code: "size_mismatch", retryable: false });
      expect(problem.recoveryHint).toMatch(/^No byte is missing/);
    }
    expect((await put(url, "abc")).status).toBe(200);
  });

  test("in chunks that end too early answers 413, keeps what came, and can go on", async () => {
    const url = await created(server.url, { "Upload-Length": "6" });
    const response = await put(url, inChunks("abc"));
    expect(response.status).toBe(413);
    expect(response.headers.get("upload-offset")).toBe("3");
    expect((await put(url, "def", range("bytes 3-5/6"))).status).toBe(200);
  });

  test("larger than any file may be answers 413 file_too_large", async () => {
    const url = await created(server.url, { "Upload-Defer-Length": "1" });
    const response = await put(url, someBytes((1 << 24) + 1));
    expect(response.status).toBe(413);
    expect(await problemOf(response)).toMatchObject({ code: "file_too_large" });
  });

  test("of another digest than announced answers 422", async () => {
    const url = await created(server.url, {
      "Upload-Length": "3",
      "Upload-Metadata": `sha256 ${base64(sha256("abd"))}`,
    });
    const response = await put(url, "abc");
    expect(response.status).toBe(422);
    expect(await problemOf(response)).toMatchObject({ code: "checksum_mismatch" });
    expect(response.headers.get("longshore-status")).toBe("mismatch");
  });

  test("with neither a length nor a body answers 411 while bytes are missing, and repeats the answer when none are", async () => {
    const url = await created(server.url, { "Upload-Length": "3" });
    const askRaw = async (): Promise<string> => {
      const raw = new RawConnection(server.port);
      raw.head(`PUT ${new URL(url).pathname} HTTP/1.1`, "Host: x", "Connection: close");
      return raw.ended();
    };
    const refused = await askRaw();
    expect(refused).toMatch(/^HTTP\/1\.1 411 /);
    expect(refused).toContain("content_length_required");
    expect(refused).toMatch(/\r\nUpload-Offset: 0\r\n/i);
    await put(url, "abc");
    const repeated = await askRaw();
    expect(repeated).toMatch(/^HTTP\/1\.1 200 /);
    expect(repeated).toContain(sha256("abc"));
  });
});

describe("PUT of a piece", () => {
  test("answers 204 until the file is complete, then 200", async () => {
    const url = await created(server.url, { "Upload-Length": "9" });
    const first = await put(url, "abc", range("bytes 0-2/9"));
    expect(first.status).toBe(204);
    expect(fieldsOf(first)).toMatchObject({ "upload-offset": "3", "longshore-status": "receiving" });
    expect((await put(url, inChunks("def"), range("bytes 3-5/9"))).status).toBe(204);
    const last = await put(url, "ghi", range("bytes 6-8/9"));
    expect(last.status).toBe(200);
    expect(await last.json()).toMatchObject({ offset: 9, size: 9, sha256: sha256("abcdefghi") });
  });

  test("from the start over a part is a resend of it", async () => {
    const url = await created(server.url, { "Upload-Length": "9" });
    await put(url, "abcd", range("bytes 0-3/9"));
    expect((await put(url, "abcdef", range("bytes 0-5/9"))).headers.get("upload-offset")).toBe("6");
    expect((await put(url, "abc", range("bytes 0-2/9"))).headers.get("upload-offset")).toBe("6");
    expect((await put(url, "xbc", range("bytes 0-2/9"))).status).toBe(409);
    expect(await offsetOf(url)).toBe("6");
  });

  test("tells the size of an upload that had none, and with * tells none", async () => {
    const url = await created(server.url, { "Upload-Defer-Length": "1" });
    expect((await put(url, "abc", range("bytes 0-2/*"))).status).toBe(204);
    expect((await head(url)).headers.get("upload-defer-length")).toBe("1");
    expect((await put(url, "de", range("bytes 3-4/6"))).status).toBe(204);
    expect((await head(url)).headers.get("upload-length")).toBe("6");
    expect((await put(url, "f", range("bytes 5-5/*"))).status).toBe(200);
  });

  test("of an empty file is what curl sends: bytes 0--1/0", async () => {
    const url = await created(server.url, { "Upload-Length": "0" });
    expect((await put(url, "", range("bytes 0--1/0"))).status).toBe(200);
    const deferred = await created(server.url, { "Upload-Defer-Length": "1" });
    expect((await put(deferred, "", range("bytes 0--1/0"))).status).toBe(200);
  });

  test("not at the offset answers 409 with the true one", async () => {
    const url = await created(server.url, { "Upload-Length": "9" });
    await put(url, "abc", range("bytes 0-2/9"));
    for (const text of ["bytes 2-3/9", "bytes 4-5/9", "bytes 7-8/9"]) {
      const response = await put(url, "xx", range(text));
      expect(response.status).toBe(409);
      expect(response.headers.get("upload-offset")).toBe("3");
      expect(await problemOf(response)).toMatchObject({ code: "offset_mismatch", partial: { cursor: 3 } });
    }
  });

  test.each([
    ["bytes 3-4/9", "abc", 400],
    ["bytes 3-6/9", "abc", 400],
    ["bytes 3-5/10", "abc", 413],
    ["bytes 3-5/99999999999", "abc", 413],
    ["bytes */9", "abc", 400],
    ["bytes 5-3/9", "abc", 400],
    ["bytes 3-5", "abc", 400],
    ["nonsense", "abc", 400],
    ["", "abc", 400],
  ])("%j with the body %j answers %i with the true offset and stores nothing", async (text, body, status) => {
    const url = await created(server.url, { "Upload-Length": "9" });
    await put(url, "abc", range("bytes 0-2/9"));
    const response = await put(url, body, range(text));
    expect(response.status).toBe(status);
    expect(response.headers.get("upload-offset")).toBe("3");
    expect(response.headers.get("longshore-status")).toBe("receiving");
    expect(await offsetOf(url)).toBe("3");
  });
});

describeWithProgram("curl", "curl", () => {
  const run = promisify(execFile);
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(path.join(os.tmpdir(), "longshore-curl-"));
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));
  const curl = async (...args: string[]): Promise<{ code: number; stdout: string }> => {
    try {
      return { code: 0, stdout: (await run("curl", ["-sS", "--max-time", "20", ...args])).stdout };
    } catch (error) {
      const { code, stdout } = error as { code: number; stdout: string };
      return { code, stdout };
    }
  };

  test("-T sends a file, a second time too; -C OFFSET -T sends the rest; an empty one goes too", async () => {
    const bytes = someBytes(3_000_000);
    const file = path.join(dir, "some file.bin");
    await writeFile(file, bytes);
    const url = await created(server.url, { "Upload-Length": "3000000" });
    await patch(url, 0, bytes.subarray(0, 1_234_567));
    const rest = await curl("-f", "-C", "1234567", "-T", file, url);
    expect(rest.code).toBe(0);
    expect(JSON.parse(rest.stdout)).toMatchObject({ status: "complete", sha256: sha256(bytes) });
    expect((await curl("-f", "-T", file, `${url}/`)).code).toBe(0);

    const fresh = await created(server.url, { "Upload-Defer-Length": "1" });
    const whole = await curl("-f", "-T", file, fresh);
    expect(JSON.parse(whole.stdout)).toMatchObject({ size: 3_000_000, sha256: sha256(bytes) });

    const empty = path.join(dir, "empty");
    await writeFile(empty, "");
    const none = await curl("-f", "-T", empty, await created(server.url, { "Upload-Defer-Length": "1" }));
    expect(JSON.parse(none.stdout)).toMatchObject({ size: 0 });
  });

  test("-f ends with an error when the file is another one", async () => {
    const file = path.join(dir, "other.bin");
    await writeFile(file, someBytes(3_000_000, 2));
    const url = await created(server.url, { "Upload-Length": "3000000" });
    await patch(url, 0, someBytes(1000, 1));
    expect((await curl("-f", "-T", file, url)).code).toBe(22);
    const shown = await curl(
      "-T",
      file,
      "-w",
      "%{http_code} %{size_upload}",
      "-o",
      "/dev/null",
      `${server.url}/files/unknown`,
    );
    // Refused before the body was asked for.
    expect(shown.stdout).toBe("404 0");
  });
});
