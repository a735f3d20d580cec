/** `longshore put`, `get` and the commands over a running server, built. */
import { createHash, randomBytes } from "node:crypto";
import { readdir, readFile, truncate, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { run, start } from "../support/built-server.ts";
import { useServer } from "../support/server-process.ts";
import { waitUntil } from "../support/wait-until.ts";

const inUse = useServer();
const env = () => ({ LONGSHORE_URL: inUse.url });
const at = (name: string) => path.join(inUse.folder, name);
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

async function newFile(name: string, size: number): Promise<Buffer> {
  const bytes = randomBytes(size);
  await writeFile(at(name), bytes);
  return bytes;
}

async function json(...args: string[]): Promise<{ status: number | null; told: Record<string, unknown> }> {
  const { status, stdout } = await run([...args, "--json"], { env: env(), cwd: inUse.folder });
  return { status, told: JSON.parse(stdout) as Record<string, unknown> };
}

describe("put and get", () => {
  test("carry a file there and back, with size and sha256 as one line of JSON", async () => {
    const bytes = await newFile("a file.bin", 3_000_000);
    const put = await json("put", "a file.bin");
    expect(put).toEqual({
      status: 0,
      told: { handle: expect.stringMatching(/^fh_/), size: bytes.length, sha256: sha256(bytes) },
    });
    const url = await downloadUrl(String(put.told.handle));
    expect(await json("get", url, "copy.bin")).toEqual({
      status: 0,
      told: { file: "copy.bin", size: bytes.length, sha256: sha256(bytes) },
    });
    expect(sha256(await readFile(at("copy.bin")))).toBe(sha256(bytes));

    // The name of the URL, which is there already.
    const again = await json("get", url);
    expect(again).toMatchObject({
      status: 1,
      told: { status: "failed", error: { message: expect.stringContaining("--force") } },
    });
    expect(await json("get", url, "--force")).toMatchObject({ status: 0, told: { file: "a file.bin" } });
  });

  test("a server that is killed in the middle and started again costs nothing but time", async () => {
    const bytes = await newFile("large.bin", 400_000_000);
    const putting = start(["put", "large.bin", "--json"], { env: env(), cwd: inUse.folder });
    await waitUntil(async () => {
      const { files } = (await json("ls")).told as { files: { filename: string; offset: number }[] };
      return files.some(({ filename, offset }) => filename === "large.bin" && offset > 0);
    });
    await inUse.killAndStart();
    expect((await putting.exit).status, putting.stderr()).toBe(0);
    const { handle, sha256: told } = JSON.parse(putting.stdout()) as { handle: string; sha256: string };
    expect(told).toBe(sha256(bytes));

    const url = await downloadUrl(handle);
    const getting = start(["get", url, "large-copy.bin", "--json"], { env: env(), cwd: inUse.folder });
    await waitUntil(async () => (await readdir(inUse.folder)).includes("large-copy.bin.part"));
    await inUse.killAndStart();
    expect((await getting.exit).status, getting.stderr()).toBe(0);
    expect(JSON.parse(getting.stdout())).toMatchObject({ sha256: sha256(bytes) });
  });

  test("put that is interrupted says how to go on, and that goes on from the offset reached", async () => {
    const bytes = await newFile("broken-off.bin", 400_000_000);
    const putting = start(["put", "broken-off.bin", "--json"], { env: env(), cwd: inUse.folder });
    await waitUntil(async () => {
      const { files } = (await json("ls")).told as { files: { filename: string; offset: number }[] };
      return files.some(({ filename, offset }) => filename === "broken-off.bin" && offset > 0);
    });
    putting.kill("SIGINT");
    expect((await putting.exit).status).toBe(130);
    const [, url = ""] = /longshore put broken-off\.bin (\S+)/.exec(putting.stderr()) ?? [];
    expect(await json("put", "broken-off.bin", url)).toMatchObject({
      status: 0,
      told: { sha256: sha256(bytes) },
    });

    await truncate(at("broken-off.bin"), 5);
    expect(await json("put", "broken-off.bin", url)).toMatchObject({
      status: 1,
      told: { status: "failed", error: { code: "size_mismatch" } },
    });
  });
});

describe("status, ls and rm", () => {
  test("tell of a file, list it, and delete it", async () => {
    await newFile("listed.bin", 10);
    const { told } = await json("put", "listed.bin");
    const handle = String(told.handle);
    expect(await json("status", handle)).toMatchObject({
      status: 0,
      told: { handle, status: "complete", size: 10 },
    });
    const people = await run(["ls"], { env: env() });
    expect(people.stdout).toMatch(new RegExp(`^${handle}  complete +10 B  listed\\.bin$`, "m"));
    expect(await json("rm", handle)).toMatchObject({ status: 0, told: { status: "deleted" } });
    expect(await json("status", handle)).toMatchObject({
      status: 1,
      told: { status: "failed", error: { code: "unknown_handle", recoveryHint: expect.any(String) } },
    });
    expect((await run(["rm", handle], { env: env() })).stderr).toContain("There is no such handle.");
  });
});

describe("what cannot be done", () => {
  test.each([
    [["put", "nothing.bin"], 1, /There is no file nothing\.bin/],
    [["put", "."], 1, /is no file/],
    [["put", "x", "not a url"], 1, /is no URL/],
    [["put"], 2, /missing required argument 'file'/],
    [["ls", "--url", "ftp://x"], 2, /--url: "ftp:\/\/x" is no URL/],
    [
      ["ls", "--url", "http://127.0.0.1:1"],
      1,
      /No server answers at http:\/\/127\.0\.0\.1:1.*longshore serve/,
    ],
  ])("%j ends with %i and a sentence", async (args, status, sentence) => {
    const done = await run(args, { env: env(), cwd: inUse.folder });
    expect([done.status, done.stdout]).toEqual([status, ""]);
    expect(done.stderr).toMatch(sentence);
  });

  test("every command knows --help and --json", async () => {
    for (const command of ["put", "get", "status", "ls", "rm", "tasks", "task"]) {
      const { status, stdout } = await run([command, "--help"]);
      expect(status).toBe(0);
      expect(stdout).toContain("--json");
    }
  });
});

async function downloadUrl(handle: string): Promise<string> {
  const response = await fetch(inUse.server.mcpUrl, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json, text/event-stream" },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "file_download", arguments: { handle } },
    }),
  });
  const text = await response.text();
  const [, data = text] = /^data: (.*)$/m.exec(text) ?? [];
  return (JSON.parse(data) as { result: { structuredContent: { url: string } } }).result.structuredContent
    .url;
}
