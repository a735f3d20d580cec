/** `longshore/client` uploads, as Node and browsers have it, against the real doors with faults in between. */
import { createHash, randomBytes } from "node:crypto";
import { truncate, writeFile } from "node:fs/promises";
import path from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as browser from "../../src/client/browser.ts";
import * as node from "../../src/client/index.ts";
import { type FilesServer, startFilesServer } from "../support/http-server.ts";
import { tempDir } from "../support/temp-dir.ts";

const { createUpload, TransferFailure, upload, uploadFile } = node;

let server: FilesServer;
beforeAll(async () => {
  server = await startFilesServer();
});
afterAll(() => server.close());

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const newUrl = (sizeBytes?: number, more: node.NewUpload = {}) =>
  createUpload(server.url, { filename: "größe.bin", ...(sizeBytes !== undefined && { sizeBytes }), ...more });

/** `fetch` that does something else on some of its calls; `calls` counts those with this method. */
function faulty(
  method: string,
  fault: (call: number, send: () => Promise<Response>) => Promise<Response>,
): typeof fetch {
  let calls = 0;
  return (url, init) => {
    const send = () => fetch(url, init);
    if (init?.method !== method) return send();
    calls += 1;
    return fault(calls, send);
  };
}

const lost = () => Promise.reject(new TypeError("fetch failed"));

describe.each([
  ["Node", node],
  ["a browser", browser],
])("in %s", (_where, client) => {
  const bytes = new Uint8Array(randomBytes(1_000_000));
  test.each([
    ["a Blob", () => new Blob([bytes])],
    ["a File", () => new File([bytes], "a")],
    ["bytes", () => bytes],
    ["an ArrayBuffer", () => bytes.slice().buffer],
    ["a web stream", () => new Blob([bytes]).stream()],
    ["a stream of pieces", () => Readable.from([bytes.subarray(0, 300_001), bytes.subarray(300_001)])],
  ])("%s is sent in chunks, with its progress, and compared in the end", async (_name, source) => {
    for (const sizeBytes of [bytes.length, undefined]) {
      const seen: number[] = [];
      const stored = await client.upload(await newUrl(sizeBytes), source(), {
        chunkBytes: 250_000,
        onProgress: ({ bytes: sent }) => void seen.push(sent),
      });
      expect(stored).toEqual({
        handle: expect.stringMatching(/^fh_/),
        size: bytes.length,
        sha256: sha256(bytes),
      });
      expect(seen).toEqual(seen.toSorted((a, b) => a - b));
      expect(seen).toEqual(expect.arrayContaining([0, 250_000, 500_000, 750_000, 1_000_000]));
    }
  });

  test("an empty file is a file too", async () => {
    for (const sizeBytes of [0, undefined])
      expect(await client.upload(await newUrl(sizeBytes), new Uint8Array(0))).toMatchObject({
        size: 0,
        sha256: sha256(new Uint8Array(0)),
      });
  });

  test("a download is written piece by piece, and goes on after a break with what is missing", async () => {
    const { handle } = await client.upload(await newUrl(bytes.length), bytes);
    const { ticket } = await server.engine.mintDownload("local", handle, null);
    const url = server.links.download(ticket, "größe.bin");
    const ranges: (string | null)[] = [];
    const breaking: typeof fetch = async (input, init) => {
      ranges.push(new Headers(init?.headers).get("range"));
      const response = await fetch(input, init);
      if (ranges.length > 3) return response;
      let left = 100_000;
      const cut = new TransformStream<Uint8Array, Uint8Array>({
        transform(piece, controller) {
          controller.enqueue(piece.subarray(0, left));
          left -= piece.length;
          if (left <= 0) controller.error(new Error("cut"));
        },
      });
      return new Response(response.body?.pipeThrough(cut) ?? null, response);
    };
    const got = new Uint8Array(bytes.length);
    const downloaded = await client.download(url, (piece, offset) => got.set(piece, offset), {
      fetch: breaking,
    });
    expect(downloaded).toEqual({
      filename: "größe.bin",
      contentType: "application/octet-stream",
      size: bytes.length,
      sha256: sha256(bytes),
    });
    expect(sha256(got)).toBe(sha256(bytes));
    expect(ranges[0]).toBeNull();
    expect(ranges.slice(1).every((range) => /^bytes=[1-9]\d*-$/.test(range ?? ""))).toBe(true);
    expect((await client.downloadBlob(url)).blob.size).toBe(bytes.length);
  });
});

describe("an upload", () => {
  const bytes = new Uint8Array(randomBytes(900_000));
  const chunkBytes = 300_000;

  test("goes on after lost connections and lost answers, and sends nothing twice that was stored", async () => {
    const offsets: string[] = [];
    const retries: string[] = [];
    const flaky = faulty("PATCH", async (call, send) => {
      if (call === 1) return lost();
      const response = await send();
      // What was stored is stored, though nobody heard of it.
      return call === 3 ? lost() : response;
    });
    const watched: typeof fetch = (url, init) => {
      const offset = new Headers(init?.headers).get("upload-offset");
      if (offset !== null) offsets.push(offset);
      return flaky(url, init);
    };
    const stored = await upload(await newUrl(bytes.length), bytes, {
      chunkBytes,
      fetch: watched,
      onRetry: ({ code }) => void retries.push(code),
    });
    expect(stored.sha256).toBe(sha256(bytes));
    expect(offsets).toEqual(["0", "0", "300000", "600000"]);
    expect(retries).toEqual(["network", "network"]);
  });

  test("of a one-shot stream survives a lost answer as well", async () => {
    const pieces = Readable.from([bytes.subarray(0, 10), bytes.subarray(10)]);
    const stored = await upload(await newUrl(), pieces, {
      chunkBytes,
      fetch: faulty("PATCH", async (call, send) => {
        if (call === 1) return lost();
        const response = await send();
        return call === 3 ? lost() : response;
      }),
    });
    expect(stored.sha256).toBe(sha256(bytes));
  });

  test("waits where the server asks for it, and takes its word for the offset", async () => {
    const url = await newUrl(bytes.length);
    const stored = await upload(url, bytes, {
      chunkBytes,
      fetch: faulty("PATCH", async (call, send) => {
        if (call === 1) return new Response(null, { status: 503, headers: { "Retry-After": "0" } });
        // Another sender of the same file was faster.
        if (call === 2)
          await fetch(url, {
            method: "PATCH",
            headers: {
              "Tus-Resumable": "1.0.0",
              "Upload-Offset": "0",
              "Content-Type": "application/offset+octet-stream",
            },
            body: bytes.subarray(0, 500_000),
          });
        return send();
      }),
    });
    expect(stored).toMatchObject({ size: bytes.length, sha256: sha256(bytes) });
  });

  test("that was aborted goes on with the same URL, and a finished one is only compared", async () => {
    const url = await newUrl(bytes.length);
    const controller = new AbortController();
    const aborted = upload(url, bytes, {
      chunkBytes,
      signal: controller.signal,
      onProgress: ({ bytes: sent }) => {
        if (sent >= chunkBytes) controller.abort(new Error("enough"));
      },
    });
    await expect(aborted).rejects.toThrow("enough");
    let patches = 0;
    const counted = faulty("PATCH", (_call, send) => {
      patches += 1;
      return send();
    });
    const first: number[] = [];
    const onProgress = ({ bytes: sent }: { bytes: number }) => void first.push(sent);
    expect(await upload(url, bytes, { chunkBytes, fetch: counted, onProgress })).toMatchObject({
      sha256: sha256(bytes),
    });
    expect(first[0]).toBeGreaterThanOrEqual(chunkBytes);
    expect(patches).toBeLessThanOrEqual(2);
    patches = 0;
    await upload(url, bytes, { fetch: counted });
    expect(patches).toBe(0);
  });

  test("of another file to the same URL is told by its digest", async () => {
    const url = await newUrl(bytes.length);
    await upload(url, bytes);
    const other = bytes.slice();
    other[5] = (other[5] ?? 0) ^ 1;
    await expect(upload(url, other)).rejects.toMatchObject({
      name: "TransferFailure",
      code: "checksum_mismatch",
    });
    await expect(upload(url, bytes.subarray(1))).rejects.toMatchObject({ code: "size_mismatch" });
  });

  test("with a wrong declared digest ends with what the server says", async () => {
    const url = await newUrl(bytes.length, { sha256: sha256(new Uint8Array(1)) });
    await expect(upload(url, bytes)).rejects.toMatchObject({ code: "checksum_mismatch", status: 422 });
  });

  test("to a URL that leads nowhere, or to something else, is a typed error at once", async () => {
    await expect(upload(`${server.url}/files/nothing`, bytes)).rejects.toMatchObject({
      code: "unknown_handle",
      status: 404,
      retryable: false,
    });
    await expect(
      upload("http://127.0.0.1:1/", bytes, { fetch: async () => new Response("hello") }),
    ).rejects.toMatchObject({ code: "not_longshore" });
    const refused = createUpload("http://127.0.0.1:1/", { attempts: 1 });
    await expect(refused).rejects.toBeInstanceOf(TransferFailure);
    await expect(refused).rejects.toMatchObject({
      code: "network",
      retryable: true,
      recoveryHint: "Check that a server answers at http://127.0.0.1:1, then try again.",
    });
  });

  test("gives up after so many tries in a row, and any progress gives them all back", async () => {
    const url = await newUrl(bytes.length);
    const down = faulty(
      "PATCH",
      async () => new Response(null, { status: 503, headers: { "Retry-After": "0" } }),
    );
    await expect(upload(url, bytes, { fetch: down, attempts: 3 })).rejects.toMatchObject({
      code: "storage_unavailable",
    });
    const everySecond = faulty("PATCH", async (call, send) =>
      call % 2 === 1 ? new Response(null, { status: 503, headers: { "Retry-After": "0" } }) : send(),
    );
    expect(await upload(url, bytes, { fetch: everySecond, attempts: 2, chunkBytes: 100_000 })).toMatchObject({
      size: bytes.length,
    });
  });

  test("of a file that changes on the way says so", async () => {
    const file = path.join(await tempDir(), "a.bin");
    await writeFile(file, bytes);
    expect(await uploadFile(await newUrl(bytes.length), file)).toMatchObject({ sha256: sha256(bytes) });
    const shrinking = uploadFile(await newUrl(bytes.length), file, {
      chunkBytes,
      onProgress: ({ bytes: sent }) => {
        if (sent === chunkBytes) void truncate(file, 10);
      },
    });
    await expect(shrinking).rejects.toMatchObject({ code: "source_changed" });
    await expect(uploadFile(await newUrl(1), path.join(file, "nothing"))).rejects.toMatchObject({
      code: "ENOTDIR",
    });
  });
});
