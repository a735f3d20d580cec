/** A client that many people have, against the real doors: what it believes in the end must be true. */
import { Readable } from "node:stream";
import { Upload, type UploadOptions } from "tus-js-client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FilesServer, startFilesServer } from "../support/http-server.ts";
import { head, patch, sha256, someBytes } from "../support/tus-requests.ts";

let server: FilesServer;
beforeAll(async () => {
  server = await startFilesServer();
});
afterAll(() => server.close());

function upload(file: Buffer | Readable, options: Partial<UploadOptions>): Promise<Upload> {
  return new Promise((resolve, reject) => {
    const one: Upload = new Upload(file, {
      endpoint: `${server.url}/files`,
      retryDelays: [0, 20, 50],
      ...options,
      onError: reject,
      onSuccess: () => resolve(one),
    });
    one.start();
  });
}

async function storedAt(url: string | null): Promise<string | null> {
  const handle = (await head(url ?? "")).headers.get("longshore-handle") ?? "";
  return (await server.engine.status("local", handle)).sha256;
}

describe("tus-js-client", () => {
  const bytes = someBytes(1_500_000);

  test.each([
    ["in one piece", {}],
    ["in chunks", { chunkSize: 200_000 }],
    ["with the first bytes in the creation", { uploadDataDuringCreation: true }],
    ["with the first chunk in the creation", { uploadDataDuringCreation: true, chunkSize: 400_000 }],
    ["with POST instead of PATCH", { overridePatchMethod: true, chunkSize: 700_000 }],
    ["with request ids", { addRequestId: true }],
    ["with metadata", { metadata: { filename: "größe.bin", filetype: "x/y", constructor: "", empty: "" } }],
  ] as [string, Partial<UploadOptions>][])("uploads %s", async (_name, options) => {
    const done = await upload(bytes, options);
    expect(await storedAt(done.url)).toBe(sha256(bytes));
  });

  test("uploads a stream whose length it does not know", async () => {
    const done = await upload(Readable.from([bytes]), { uploadLengthDeferred: true, chunkSize: 300_000 });
    expect(await storedAt(done.url)).toBe(sha256(bytes));
  });

  test("uploads four parts of 40 MiB at once, and the whole has the right digest", async () => {
    const large = someBytes(40 << 20);
    const digest = sha256(large);
    const done = await upload(large, {
      parallelUploads: 4,
      metadata: { filename: "large.bin", sha256: digest },
    });
    const looked = await head(done.url ?? "");
    expect(looked.headers.get("upload-concat")).toMatch(/^final;(http\S+ ){3}http\S+$/);
    expect(looked.headers.get("upload-offset")).toBe(String(large.byteLength));
    expect(await storedAt(done.url)).toBe(digest);
  });

  test("is told when four parts do not make the file that was announced", async () => {
    const options = { parallelUploads: 4, retryDelays: null, metadata: { sha256: "0".repeat(64) } };
    await expect(upload(bytes, options)).rejects.toThrow(/422/);
  });

  test("uploads three parts at once in chunks", async () => {
    const done = await upload(bytes, { parallelUploads: 3, chunkSize: 100_000 });
    expect(await storedAt(done.url)).toBe(sha256(bytes));
  });

  test("uploads an empty file", async () => {
    const done = await upload(Buffer.alloc(0), {});
    expect(await storedAt(done.url)).toBe(sha256(""));
  });

  test("goes on where another left off", async () => {
    const first = await fetch(`${server.url}/files`, {
      method: "POST",
      headers: { "Tus-Resumable": "1.0.0", "Upload-Length": String(bytes.byteLength) },
    });
    const url = first.headers.get("location") ?? "";
    await patch(url, 0, bytes.subarray(0, 600_000));
    let sent = 0;
    await upload(bytes, { uploadUrl: url, onProgress: (soFar) => (sent = Math.max(sent, soFar)) });
    expect(sent).toBe(bytes.byteLength);
    expect(await storedAt(url)).toBe(sha256(bytes));
  });

  test("is told when the file is not the one that was announced, and does not report success", async () => {
    await expect(upload(bytes, { metadata: { sha256: "0".repeat(64) } })).rejects.toThrow(/422/);
  });

  test("ends its upload on the server with abort", async () => {
    const one = await upload(bytes, {});
    const url = one.url ?? "";
    await one.abort(true);
    expect((await head(url)).status).toBe(404);
  });
});
