/** `longshore put`, `get` and the commands over a running server, built. */
import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdir, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { run, start } from "../support/built-server.ts";
import { useServer } from "../support/server-process.ts";
import { created } from "../support/tus-requests.ts";
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

describe("a command that ends early says that it goes on only where that can be", () => {
  const people = (...args: string[]) => run(args, { env: env(), cwd: inUse.folder });
  const names = () => readdir(inUse.folder);

  test("get of what is not there leaves nothing behind", async () => {
    const { status, stderr } = await people("get", `${inUse.url}/d/nope/x`, "not-there");
    expect(status).toBe(1);
    expect(stderr).toMatch(/^There is no such handle\.\n/);
    expect(stderr).not.toContain(".part");
    expect(await names()).not.toContain("not-there.part");
  });

  test("get of what is not there any more keeps what an earlier try has left, and does not say that it will be of use", async () => {
    await writeFile(at("gone.part"), "bytes");
    const { status, stderr } = await people("get", `${inUse.url}/d/nope/x`, "gone");
    expect(status).toBe(1);
    expect(stderr).not.toContain(".part");
    expect(await readFile(at("gone.part"), "utf8")).toBe("bytes");
  });

  test("get that is interrupted before a byte has come leaves nothing behind", async () => {
    const getting = start(["get", "http://127.0.0.1:1/d/x/x", "refused"], { cwd: inUse.folder });
    await waitUntil(async () => (await names()).includes("refused.part"));
    getting.kill("SIGINT");
    expect((await getting.exit).status).toBe(130);
    expect(getting.stderr()).toBe("");
    expect(await names()).not.toContain("refused.part");
  });

  test("get that is interrupted in the middle says where its bytes are", async () => {
    const silent = createServer((_request, response) => {
      response.writeHead(200, { "Content-Length": "100", ETag: '"x"' }).write("begun");
    });
    onTestFinished(() => void silent.close().closeAllConnections());
    await once(silent.listen(0, "127.0.0.1"), "listening");
    const { port } = silent.address() as AddressInfo;
    const getting = start(["get", `http://127.0.0.1:${port}/d/x/x`, "begun"], { cwd: inUse.folder });
    await waitUntil(async () => (await stat(at("begun.part")).catch(() => null))?.size === 5);
    getting.kill("SIGINT");
    expect((await getting.exit).status).toBe(130);
    expect(getting.stderr()).toBe("What has come is in begun.part; the same command goes on from there.\n");
  });

  test("put to the URL of an upload of another size", async () => {
    await newFile("five.bin", 5);
    const url = await created(inUse.url, { "Upload-Length": "10" });
    const { status, stderr } = await people("put", "five.bin", url);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^The upload is for 10 bytes, and the source has 5\.\n/);
    expect(stderr).not.toContain("longshore put");
  });

  test("put where no server is", async () => {
    await newFile("unsent.bin", 5);
    const { status, stderr } = await people("put", "unsent.bin", "http://127.0.0.1:1");
    expect(status).toBe(1);
    expect(stderr).toBe(
      "The connection to the server failed.\nCheck that a server answers at http://127.0.0.1:1, then try again.\n",
    );
  });
});

describe("hints", () => {
  test.each([
    [["status", "fh_nope"], "Run 'longshore ls' to see your handles", "Call file_list"],
    [["rm", "fh_nope"], "Run 'longshore ls' to see your handles", "Call file_list"],
    [["status", "./a.bin"], "'longshore put FILE'", "Call upload_create"],
    [["task", "tk_nope"], "Run 'longshore tasks' to see your tasks", "Call durable_task_list"],
    [["task", "tk_nope", "--cancel"], "Run 'longshore tasks'", "Call durable_task_list"],
  ])("after %j name commands for people, and tools in JSON", async (args, forPeople, forPrograms) => {
    const { stderr } = await run(args, { env: env() });
    expect(stderr).toContain(forPeople);
    expect(stderr).not.toMatch(/(?:upload|file|durable_task)_[a-z]/);
    expect(await json(...args)).toMatchObject({
      told: { error: { recoveryHint: expect.stringContaining(forPrograms) } },
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
    [["put", "."], 1, /^\. is a folder\. Make an archive of it first\.$/m],
    [["put", "/dev/null"], 1, /^\/dev\/null is a pipe or a device\. .* file first\.$/m],
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

  test("a pipe is not taken for a folder", async () => {
    execFileSync("mkfifo", [at("pipe")]);
    const { status, stderr } = await run(["put", "pipe"], { env: env(), cwd: inUse.folder });
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^pipe is a pipe or a device\./)]);
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
