import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Crc32c } from "../../src/integrity/crc32c.ts";
import { type FilesServer, RawConnection, startFilesServer } from "../support/http-server.ts";
import {
  created,
  fieldsOf,
  head,
  inChunks,
  offsetMedia,
  patch,
  post,
  problemOf,
  someBytes,
  tusHeaders,
} from "../support/tus-requests.ts";

let server: FilesServer;
beforeAll(async () => {
  server = await startFilesServer();
});
afterAll(() => server.close());

const bytes = someBytes(200_000);
const others = someBytes(200_000, 2);

function digestOf(algorithm: string, of: Uint8Array): string {
  if (algorithm !== "crc32c") return createHash(algorithm.replace("-", "")).update(of).digest("base64");
  const sum = new Crc32c();
  sum.update(of);
  return Buffer.from(sum.hex(), "hex").toString("base64");
}
const checksum = (algorithm: string, of: Uint8Array) => ({
  "Upload-Checksum": `${algorithm} ${digestOf(algorithm, of)}`,
});
const contentDigest = (algorithm: "sha-256" | "sha-512", of: Uint8Array) => ({
  "Content-Digest": `${algorithm}=:${digestOf(algorithm, of)}:`,
});
const offsetOf = async (url: string) => (await head(url)).headers.get("upload-offset");
const newUpload = (size = bytes.length) => created(server.url, { "Upload-Length": String(size) });

describe.each(["sha256", "sha1", "md5", "crc32c"])("Upload-Checksum with %s", (algorithm) => {
  test("that is right lets PATCH pass, in pieces and in chunks", async () => {
    const url = await newUpload();
    const [first, second] = [bytes.subarray(0, 70_000), bytes.subarray(70_000)];
    expect((await patch(url, 0, first, checksum(algorithm, first))).status).toBe(204);
    const last = await patch(url, 70_000, inChunks(second), checksum(algorithm, second));
    expect([last.status, last.headers.get("longshore-status")]).toEqual([204, "complete"]);
  });

  test("that is wrong answers 460, says the offset and keeps nothing of the chunk", async () => {
    const url = await newUpload();
    await patch(url, 0, bytes.subarray(0, 1_000));
    const rest = bytes.subarray(1_000);
    const response = await patch(url, 1_000, others.subarray(1_000), checksum(algorithm, rest));
    expect(response.status).toBe(460);
    expect(fieldsOf(response)).toMatchObject({ "upload-offset": "1000", "longshore-status": "receiving" });
    expect(await problemOf(response)).toMatchObject({
      code: "checksum_mismatch",
      status: 460,
      retryable: true,
      partial: { cursor: 1_000 },
    });
    expect(await offsetOf(url)).toBe("1000");
    expect((await patch(url, 1_000, rest, checksum(algorithm, rest))).headers.get("longshore-status")).toBe(
      "complete",
    );
  });

  test("is checked in creation-with-upload, and the upload stays where it is wrong", async () => {
    const fields = { "Upload-Length": String(bytes.length), "Content-Type": offsetMedia };
    const right = await post(server.url, { ...fields, ...checksum(algorithm, bytes) }, bytes);
    expect([right.status, right.headers.get("longshore-status")]).toEqual([201, "complete"]);
    const wrong = await post(server.url, { ...fields, ...checksum(algorithm, bytes) }, others);
    expect([wrong.status, wrong.headers.get("upload-offset")]).toEqual([460, "0"]);
    const url = wrong.headers.get("location") ?? "";
    expect((await patch(url, 0, bytes, checksum(algorithm, bytes))).status).toBe(204);
  });
});

describe("Upload-Checksum", () => {
  test.each(["sha512 YQ==", "crc32 YQ==", "sha-1 YQ==", "constructor YQ==", "", "YQ=="])(
    "%j answers 400 unsupported_checksum before a byte is read",
    async (text) => {
      const url = await newUpload();
      const response = await patch(url, 0, bytes, { "Upload-Checksum": text });
      expect(response.status).toBe(400);
      expect(await problemOf(response)).toMatchObject({
        code: "unsupported_checksum",
        param: "Upload-Checksum",
      });
      expect(await offsetOf(url)).toBe("0");
    },
  );

  test.each([
    "sha1",
    "sha1 ",
    "sha1 YQ==",
    "sha1 !",
    "sha1  2jmj7l5rSw0yVb/vlWAYkK/YBwk=",
    "sha1 2jmj7l5rSw0yVb/vlWAYkK/YBwk",
    "sha1 2jmj7l5rSw0yVb/vlWAYkK/YBwl=",
    "sha1 2jmj7l5rSw0yVb/vlWAYkK/YBwk= x",
    "sha1 2jmj7l5rSw0yVb_vlWAYkK_YBwk=",
    "crc32c AAAAAAA=",
    `sha256 ${Buffer.alloc(31).toString("base64")}`,
  ])("%j answers 400 invalid_param", async (text) => {
    const url = await newUpload();
    const response = await patch(url, 0, bytes, { "Upload-Checksum": text });
    expect(response.status).toBe(400);
    expect(await problemOf(response)).toMatchObject({ code: "invalid_param", param: "Upload-Checksum" });
  });

  test("of an illegal form creates nothing", async () => {
    const fields = { "Upload-Length": "3", "Content-Type": offsetMedia, "Upload-Checksum": "sha1 x" };
    const response = await post(server.url, fields, "abc");
    expect([response.status, response.headers.get("location")]).toEqual([400, null]);
  });

  test("of nothing is checked on an empty PATCH, before and after the end", async () => {
    const url = await newUpload(3);
    const none = Buffer.alloc(0);
    for (const [offset, body] of [
      [0, "abc"],
      [3, null],
    ] as const) {
      expect((await patch(url, offset, "", checksum("sha1", none))).status).toBe(204);
      expect((await patch(url, offset, "", checksum("sha1", bytes))).status).toBe(460);
      if (body !== null) await patch(url, offset, body);
    }
  });

  test("with a body that breaks off keeps nothing of it", async () => {
    const url = await newUpload();
    await patch(url, 0, bytes.subarray(0, 10));
    const raw = new RawConnection(server.port);
    raw.head(
      `PATCH ${new URL(url).pathname} HTTP/1.1`,
      "Host: x",
      "Tus-Resumable: 1.0.0",
      `Content-Type: ${offsetMedia}`,
      "Upload-Offset: 10",
      `Content-Length: ${bytes.length - 10}`,
      `Upload-Checksum: ${checksum("sha1", bytes.subarray(10))["Upload-Checksum"]}`,
    );
    raw.write(bytes.subarray(10, 5_000));
    await new Promise((resolve) => setTimeout(resolve, 50));
    raw.end();
    expect(await offsetOf(url)).toBe("10");
  });
});

describe("Upload-Checksum in the trailer", () => {
  async function trailed(
    url: string,
    body: Uint8Array,
    trailer: string[],
    framing = "Transfer-Encoding: chunked",
  ) {
    const raw = new RawConnection(server.port);
    raw.head(
      `PATCH ${new URL(url).pathname} HTTP/1.1`,
      "Host: x",
      "Tus-Resumable: 1.0.0",
      `Content-Type: ${offsetMedia}`,
      "Upload-Offset: 0",
      "Trailer: Upload-Checksum",
      "Connection: close",
      framing,
    );
    if (framing.startsWith("T")) {
      raw.write(`${body.length.toString(16)}\r\n`).write(body);
      raw.head("\r\n0", ...trailer);
    } else raw.write(body);
    return raw.ended();
  }

  test.each(["sha256", "sha1", "md5", "crc32c"])(
    "with %s is checked like one in the header",
    async (algorithm) => {
      const url = await newUpload();
      const line = `Upload-Checksum: ${algorithm} ${digestOf(algorithm, bytes)}`;
      const wrong = await trailed(url, others, [line]);
      expect(wrong).toMatch(/^HTTP\/1\.1 460 [\s\S]*Upload-Offset: 0\r\n/i);
      expect(await offsetOf(url)).toBe("0");
      expect(await trailed(url, bytes, [line])).toMatch(/^HTTP\/1\.1 204 [\s\S]*Longshore-Status: complete/i);
    },
  );

  test.each([
    ["that does not come", [], "invalid_param"],
    ["of an unknown algorithm", ["Upload-Checksum: sha512 YQ=="], "unsupported_checksum"],
    ["of an illegal form", ["Upload-Checksum: sha1 YQ=="], "invalid_param"],
    ["that comes twice", ["Upload-Checksum: sha1 YQ==", "Upload-Checksum: sha1 YQ=="], "invalid_param"],
  ])("%s answers 400 and keeps nothing", async (_name, trailer, code) => {
    const url = await newUpload();
    const answer = await trailed(url, bytes, trailer);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain(`"code":"${code}"`);
    expect(await offsetOf(url)).toBe("0");
  });

  test("announced for a body of known length, which has none, answers 400", async () => {
    const url = await newUpload();
    expect(await trailed(url, bytes, [], `Content-Length: ${bytes.length}`)).toMatch(/^HTTP\/1\.1 400 /);
    expect(await offsetOf(url)).toBe("0");
  });

  test("cannot be had from a bare fetch call, which says so", async () => {
    const url = await newUpload(3);
    const response = await server.app.request(url, {
      method: "PATCH",
      headers: {
        ...tusHeaders,
        "Content-Type": offsetMedia,
        "Upload-Offset": "0",
        Trailer: "Upload-Checksum",
      },
      body: "abc",
    });
    expect(response.status).toBe(400);
    expect(await offsetOf(url)).toBe("0");
  });
});

describe("Content-Digest", () => {
  const put = (url: string, body: Uint8Array<ArrayBuffer>, fields: Record<string, string>) =>
    fetch(url, { method: "PUT", headers: fields, body });

  test.each(["sha-256", "sha-512"] as const)(
    "with %s is checked on PATCH and PUT: 400, and the offset stays",
    async (algorithm) => {
      for (const send of [
        patch.bind(null),
        (url: string, _at: number, body: Buffer<ArrayBuffer>, f: Record<string, string>) => put(url, body, f),
      ]) {
        const url = await newUpload();
        const wrong = await send(url, 0, others, contentDigest(algorithm, bytes));
        expect([wrong.status, wrong.headers.get("upload-offset")]).toEqual([400, "0"]);
        expect(await problemOf(wrong)).toMatchObject({ code: "checksum_mismatch", retryable: true });
        expect(await offsetOf(url)).toBe("0");
        const right = await send(url, 0, bytes, contentDigest(algorithm, bytes));
        expect(right.ok).toBe(true);
        expect(right.headers.get("longshore-status")).toBe("complete");
      }
    },
  );

  test("of a resent file is that of all its bytes, also where it is complete already", async () => {
    const url = await newUpload();
    await patch(url, 0, bytes.subarray(0, 50_000));
    expect((await put(url, bytes, contentDigest("sha-256", bytes.subarray(50_000)))).status).toBe(400);
    expect(await offsetOf(url)).toBe("50000");
    expect((await put(url, bytes, contentDigest("sha-256", bytes))).status).toBe(200);
    expect((await put(url, bytes, contentDigest("sha-256", bytes))).status).toBe(200);
    expect((await put(url, bytes, contentDigest("sha-256", others))).status).toBe(400);
  });

  test("of algorithms that are not known counts for nothing, beside one that is known", async () => {
    const url = await newUpload();
    const unknown = `md5=:${digestOf("md5", others)}:, unixsum=30637, adler=?1, id-sha-256=(a b)`;
    expect((await patch(url, 0, bytes.subarray(0, 10), { "Content-Digest": unknown })).status).toBe(204);
    const known = contentDigest("sha-256", others)["Content-Digest"];
    expect(
      (await patch(url, 10, bytes.subarray(10), { "Content-Digest": `${unknown}, ${known}` })).status,
    ).toBe(400);
    expect(await offsetOf(url)).toBe("10");
  });

  test("and Upload-Checksum both have to be right", async () => {
    const url = await newUpload();
    const both = { ...checksum("sha1", bytes), ...contentDigest("sha-256", others) };
    expect((await patch(url, 0, bytes, both)).status).toBe(400);
    expect((await patch(url, 0, bytes, { ...both, ...checksum("sha1", others) })).status).toBe(460);
    expect((await patch(url, 0, bytes, { ...both, ...contentDigest("sha-256", bytes) })).status).toBe(204);
  });

  test.each([
    "sha-256",
    "sha-256=abc",
    "sha-256=:YQ==:",
    "sha-256=1",
    "sha-256=(:YQ==:)",
    "=",
    ":YQ==:",
    ",",
    "sha-256=:!:",
  ])("%j answers 400 invalid_param, since a check was asked for", async (text) => {
    const url = await newUpload();
    const response = await patch(url, 0, bytes, { "Content-Digest": text });
    expect(response.status).toBe(400);
    expect(await problemOf(response)).toMatchObject({ code: "invalid_param", param: "Content-Digest" });
    expect(await offsetOf(url)).toBe("0");
  });
});

describe("a body that ends before its announced length", () => {
  test.each(["PATCH", "PUT"])(
    "without breaking off completes nothing by %s; what came is kept and told",
    async (method) => {
      for (const size of [{ "Upload-Length": "100000" }, { "Upload-Defer-Length": "1" }]) {
        const url = await created(server.url, size as Record<string, string>);
        const response = await server.app.request(url, {
          method,
          headers: {
            ...(method === "PATCH" && tusHeaders),
            "Content-Type": offsetMedia,
            "Upload-Offset": "0",
            "Content-Length": "100000",
          },
          body: inChunks(bytes.subarray(0, 60_000)),
          duplex: "half",
        } as RequestInit);
        expect([response.status, response.headers.get("upload-offset")]).toEqual([413, "60000"]);
        expect(await problemOf(response)).toMatchObject({
          code: "size_mismatch",
          partial: { cursor: 60_000 },
        });
        const looked = await head(url);
        expect(fieldsOf(looked)).toMatchObject({ "upload-offset": "60000", "longshore-status": "receiving" });
      }
    },
  );
});
