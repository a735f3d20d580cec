/** Downloads to a path: whole files under their name, all else beside it. */
import { createHash, randomBytes } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createUpload, downloadFile, upload } from "../../src/client/index.ts";
import { type FilesServer, startFilesServer } from "../support/http-server.ts";
import { tempDir } from "../support/temp-dir.ts";

const bytes = new Uint8Array(randomBytes(500_000));
const sha256 = createHash("sha256").update(bytes).digest("hex");
let server: FilesServer;
let url = "";
beforeAll(async () => {
  server = await startFilesServer();
  const { handle } = await upload(await createUpload(server.url, { sizeBytes: bytes.length }), bytes);
  url = server.links.download((await server.engine.mintDownload("local", handle, null)).ticket, "a.bin");
});
afterAll(() => server.close());

test("a download that was aborted goes on with its part, and the part becomes the file", async () => {
  const folder = await tempDir();
  const file = path.join(folder, "a.bin");
  const controller = new AbortController();
  const onProgress = () => controller.abort(new Error("enough"));
  await expect(downloadFile(url, file, { signal: controller.signal, onProgress })).rejects.toThrow("enough");
  expect(await readdir(folder)).toEqual(["a.bin.part"]);
  const kept = (await readFile(`${file}.part`)).length;
  expect(kept).toBeGreaterThan(0);
  let first = -1;
  const downloaded = await downloadFile(url, file, {
    onProgress: (progress) => {
      if (first === -1) first = progress.bytes;
    },
  });
  expect(downloaded).toMatchObject({ size: bytes.length, sha256 });
  expect(first).toBeGreaterThan(kept);
  expect(await readdir(folder)).toEqual(["a.bin"]);
  expect(
    createHash("sha256")
      .update(await readFile(file))
      .digest("hex"),
  ).toBe(sha256);
});

test.each([
  ["has other bytes", randomBytes(1_000)],
  ["is longer than the file", randomBytes(600_000)],
  ["is whole already", Buffer.from(bytes)],
])("a part that %s does no harm", async (_what, part) => {
  const file = path.join(await tempDir(), "a.bin");
  await writeFile(`${file}.part`, part);
  expect(await downloadFile(url, file)).toMatchObject({ size: bytes.length, sha256 });
  expect(
    createHash("sha256")
      .update(await readFile(file))
      .digest("hex"),
  ).toBe(sha256);
});

test("an empty file, and a URL past its time", async () => {
  const empty = await upload(await createUpload(server.url, { sizeBytes: 0 }), new Uint8Array(0));
  const { ticket } = await server.engine.mintDownload("local", empty.handle, null);
  const file = path.join(await tempDir(), "empty");
  expect(await downloadFile(server.links.download(ticket, "empty"), file)).toMatchObject({ size: 0 });
  expect((await readFile(file)).length).toBe(0);
  await expect(downloadFile(`${server.url}/d/nothing/x`, `${file}2`)).rejects.toMatchObject({ status: 404 });
});

test("a download of which nothing came leaves no part, and takes away none that was there", async () => {
  const folder = await tempDir();
  const file = path.join(folder, "a.bin");
  const nowhere = `${server.url}/d/nothing/x`;
  await expect(downloadFile(nowhere, file)).rejects.toMatchObject({ status: 404 });
  const lost: typeof fetch = () => Promise.reject(new TypeError("fetch failed"));
  await expect(downloadFile(url, file, { fetch: lost, attempts: 1 })).rejects.toMatchObject({
    code: "network",
  });
  expect(await readdir(folder)).toEqual([]);
  for (const left of ["", "bytes"]) {
    await writeFile(`${file}.part`, left);
    await expect(downloadFile(nowhere, file)).rejects.toMatchObject({ status: 404 });
    expect(await readFile(`${file}.part`, "utf8")).toBe(left);
  }
});

test("bytes that are not those of the digest are never given the file's name", async () => {
  const folder = await tempDir();
  const spoiling: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    const body = new Uint8Array(await response.arrayBuffer());
    body[7] = (body[7] ?? 0) ^ 1;
    return new Response(body, response);
  };
  await expect(downloadFile(url, path.join(folder, "a"), { fetch: spoiling })).rejects.toMatchObject({
    code: "checksum_mismatch",
  });
  expect(await readdir(folder)).toEqual(["a.part"]);
});
