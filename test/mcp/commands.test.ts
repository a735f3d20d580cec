/** The command lines in results are run as they are, by a shell, in the folder that holds the file. */
import { readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { program } from "../support/client-programs.ts";
import { randomBytes, sha256 } from "../support/engine.ts";
import { clientKinds, connect, facts, failure, type TestClient } from "../support/mcp-clients.ts";
import { describeWithProgram } from "../support/needs-program.ts";
import { startTestServer } from "../support/running-server.ts";
import { tempDir } from "../support/temp-dir.ts";

const awkward = "it's a $HOME & `more` – é.bin";

const shell = (command: string, folder: string) => program("sh", ["-c", `${command} -sS`], folder);

async function connected(flags: Parameters<typeof startTestServer>[0] = {}): Promise<TestClient> {
  const { mcpUrl } = await startTestServer(flags);
  return connect(clientKinds[0], mcpUrl);
}

async function fileIn(folder: string, name: string, bytes: Buffer): Promise<void> {
  await writeFile(path.join(folder, name), bytes);
}

describeWithProgram("curl", "the commands in results", () => {
  test("upload and download a file whose name a shell would take apart", async () => {
    const client = await connected();
    const [from, to, bytes] = [await tempDir(), await tempDir(), randomBytes(300_000)];
    await fileIn(from, awkward, bytes);
    const created = await facts(client, "upload_create", {
      filename: awkward,
      size: bytes.length,
      sha256: sha256(bytes),
    });
    expect(await shell(created.commands.curl, from)).toMatchObject({ status: 0, stderr: "" });
    const status = await facts(client, "upload_status", { handle: created.handle, waitMs: 40_000 });
    expect(status).toMatchObject({ status: "complete", sha256: sha256(bytes) });
    const download = await facts(client, "file_download", { handle: created.handle });
    expect(await shell(download.commands.curl, to)).toMatchObject({ status: 0, stderr: "" });
    expect((await readFile(path.join(to, awkward))).equals(bytes)).toBe(true);
  });

  test.each([
    ["a pattern for curl of names that exist", "img[1-3].png"],
    ["a pattern for curl of names that do not", "report{a,b}.pdf"],
    ["as long as a name may be", `${"n".repeat(251)}.txt`],
    ["cut within a character where a URL has enough of it", `${"n".repeat(199)}😀.txt`],
  ])("send the file whose name is %s, and fetch it", async (_name, filename) => {
    const client = await connected();
    const [from, to, bytes] = [await tempDir(), await tempDir(), randomBytes(1000)];
    await fileIn(from, filename, bytes);
    await fileIn(from, "img1.png", randomBytes(1000));
    const created = await facts(client, "upload_create", { filename });
    expect(await shell(created.commands.curl, from)).toMatchObject({ status: 0 });
    const status = await facts(client, "upload_status", { handle: created.handle, waitMs: 40_000 });
    expect(status).toMatchObject({ status: "complete", filename, sha256: sha256(bytes) });
    const download = await facts(client, "file_download", { handle: created.handle });
    expect(await shell(download.commands.curl, to)).toMatchObject({ status: 0 });
    const [fetched = ""] = await readdir(to);
    expect((await readFile(path.join(to, fetched))).equals(bytes)).toBe(true);
  });

  test("go on where the bytes stopped", async () => {
    const client = await connected();
    const [folder, bytes] = [await tempDir(), randomBytes(50_000)];
    await fileIn(folder, "a.bin", bytes);
    const { handle } = await facts(client, "upload_create", { filename: "a.bin", size: bytes.length });
    await facts(client, "upload_write", {
      handle,
      offset: 0,
      data: bytes.subarray(0, 20_000).toString("base64"),
    });
    const resumed = await facts(client, "upload_resume", { handle });
    expect(await shell(resumed.commands.curl, folder)).toMatchObject({ status: 0 });
    expect(await facts(client, "upload_status", { handle })).toMatchObject({
      status: "complete",
      sha256: sha256(bytes),
    });
  });

  test("take over where upload_write is refused because the file has grown too large for it", async () => {
    const client = await connected({ inlineFileBytes: "30000", inlineChunkBytes: "20000" });
    const [folder, bytes] = [await tempDir(), randomBytes(50_000)];
    await fileIn(folder, "a.bin", bytes);
    const { handle } = await facts(client, "upload_create", { filename: "a.bin" });
    const chunk = (offset: number) => ({
      handle,
      offset,
      data: bytes.subarray(offset, offset + 20_000).toString("base64"),
    });
    await facts(client, "upload_write", chunk(0));
    const error = await failure(client, "upload_write", chunk(20_000));
    expect(error).toMatchObject({ code: "inline_too_large", retryable: true });
    expect(error.recoveryHint).toContain("commands.curl");
    expect(await shell(error.commands?.curl ?? "", folder)).toMatchObject({ status: 0 });
    expect(await facts(client, "upload_status", { handle })).toMatchObject({
      status: "complete",
      sha256: sha256(bytes),
    });
  });

  test("fail where the sha256 is wrong, and repair the file after upload_resume", async () => {
    const client = await connected();
    const [folder, right] = [await tempDir(), randomBytes(10_000)];
    await fileIn(folder, "a.bin", randomBytes(10_000));
    const created = await facts(client, "upload_create", {
      filename: "a.bin",
      size: 10_000,
      sha256: sha256(right),
    });
    expect((await shell(created.commands.curl, folder)).status).not.toBe(0);
    const { handle } = created;
    const status = await facts(client, "upload_status", { handle });
    expect(status.status).toBe("mismatch");
    expect(status.nextStep).toContain(`upload_resume with handle "${handle}"`);
    await fileIn(folder, "a.bin", right);
    const resumed = await facts(client, "upload_resume", { handle });
    expect(await shell(resumed.commands.curl, folder)).toMatchObject({ status: 0 });
    expect(await facts(client, "upload_status", { handle })).toMatchObject({
      status: "complete",
      sha256: sha256(right),
    });
  });
});
