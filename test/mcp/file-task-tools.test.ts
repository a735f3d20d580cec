/** The tools that start work on files, through a client, on a whole server. */
import { createHash, randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { connect, type Facts, facts, failure, type TestClient } from "../support/mcp-clients.ts";
import { startTestServer } from "../support/running-server.ts";
import { tempDir } from "../support/temp-dir.ts";
import { sendFile, serveSource } from "../tasks/kinds/source-server.ts";

const bytes = randomBytes(200_000);
const sha256 = createHash("sha256").update(bytes).digest("hex");
const unknown = `fh_${"a".repeat(32)}`;

async function started(client: TestClient, tool: string, args: Record<string, unknown>): Promise<Facts> {
  const answer = await facts(client, tool, args);
  expect(answer).toMatchObject({
    status: expect.any(String),
    taskId: expect.stringMatching(/^task_/),
    pollIntervalMs: expect.any(Number),
  });
  expect(answer.nextStep).toContain("durable_task_get");
  return answer;
}

/** Follows the task to its end, as `nextStep` says. */
async function outcome(client: TestClient, tool: string, args: Record<string, unknown>): Promise<Facts> {
  const { taskId } = await started(client, tool, args);
  for (let round = 0; round < 10; round += 1) {
    const task = await facts(client, "durable_task_get", { taskId, waitMs: 10_000 });
    if (task.status !== "working") return task;
  }
  throw new Error(`${tool} does not end`);
}

describe("the tools that start work on files", () => {
  test("lead from a URL to a file, its digests, an archive of it, and the files in that", async () => {
    const source = await serveSource((request, response, account) =>
      sendFile(request, response, account, {
        bytes,
        headers: { "content-type": "application/octet-stream" },
      }),
    );
    const server = await startTestServer({ allowImport: "127.0.0.1" });
    const client = await connect("a client of 2026-07-28", server.mcpUrl);
    const imported = await outcome(client, "file_import", {
      url: `${source.url}/data.bin`,
      sha256: sha256.toUpperCase(),
      filename: "folder/data.bin",
    });
    expect(imported).toMatchObject({
      status: "completed",
      result: { filename: "data.bin", size: 200_000, sha256, contentType: "application/octet-stream" },
    });
    const { handle } = imported.result as { handle: string };
    const checked = await outcome(client, "file_checksum", {
      handle,
      algorithms: ["md5", "crc32c", "blake3"],
    });
    expect(checked.result).toMatchObject({
      digests: {
        md5: createHash("md5").update(bytes).digest("hex"),
        crc32c: expect.stringMatching(/^[0-9a-f]{8}$/),
        blake3: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    });
    const archived = await outcome(client, "file_archive", {
      handles: [handle, handle],
      format: "tar.gz",
      filename: "both.tgz",
    });
    expect(archived.result).toMatchObject({ filename: "both.tgz", files: 2 });
    const extracted = await outcome(client, "file_extract", {
      handle: (archived.result as { handle: string }).handle,
    });
    expect(extracted.result).toMatchObject({
      format: "tar.gz",
      count: 2,
      files: [
        { path: "data.bin", size: 200_000, sha256 },
        { path: "data (2).bin", size: 200_000, sha256 },
      ],
    });
  });

  test("give the same task for the same key and arguments, and a conflict for others", async () => {
    const source = await serveSource((request, response, account) =>
      sendFile(request, response, account, { bytes }),
    );
    const server = await startTestServer({ allowImport: "127.0.0.0/8" });
    const client = await connect("a client of 2026-07-28", server.mcpUrl);
    const args = { url: `${source.url}/x`, idempotencyKey: "k" };
    const first = await started(client, "file_import", args);
    expect((await started(client, "file_import", args)).taskId).toBe(first.taskId);
    expect(await failure(client, "file_import", { ...args, size: 5 })).toMatchObject({
      code: "idempotency_conflict",
    });
  });

  test("take files from the folders that the operator names", async () => {
    const root = path.join(await tempDir(), "with, comma");
    await mkdir(root);
    await writeFile(path.join(root, "x.bin"), bytes);
    const server = await startTestServer({ importRoots: `/nowhere,${path.dirname(root)}` });
    const client = await connect("a client of 2026-07-28", server.mcpUrl);
    const { result } = await outcome(client, "file_import", {
      url: pathToFileURL(path.join(root, "x.bin")).href,
    });
    expect(result).toMatchObject({ filename: "x.bin", sha256 });
  });

  test.each([
    ["file_import", { url: "/home/me/data.csv" }, "client_path_not_reachable"],
    ["file_import", { url: "C:\\data.csv" }, "client_path_not_reachable"],
    ["file_import", { url: "data" }, "invalid_param"],
    ["file_import", { url: "ftp://example.com/x" }, "url_not_allowed"],
    ["file_import", { url: "https://example.com/x", sha256: "abc" }, "invalid_param"],
    ["file_checksum", { handle: "/tmp/x.bin", algorithms: ["md5"] }, "client_path_not_reachable"],
    ["file_checksum", { handle: unknown, algorithms: [] }, "invalid_param"],
    ["file_checksum", { handle: unknown, algorithms: ["crc16"] }, "invalid_param"],
    ["file_archive", { handles: [], format: "zip" }, "invalid_param"],
    ["file_archive", { handles: ["x.bin"], format: "zip" }, "client_path_not_reachable"],
    ["file_archive", { handles: [unknown], format: "rar" }, "invalid_param"],
    ["file_extract", { handle: "archive.zip" }, "client_path_not_reachable"],
  ])("%s refuses %j at once", async (tool, args, code) => {
    const server = await startTestServer();
    expect(await failure(await connect("a client of 2026-07-28", server.mcpUrl), tool, args)).toMatchObject({
      code,
    });
  });

  test.each([
    ["file_import", { url: "http://127.0.0.1:1/x" }, "url_not_allowed"],
    ["file_import", { url: "file:///etc/passwd" }, "url_not_allowed"],
    ["file_checksum", { handle: unknown, algorithms: ["md5"] }, "unknown_handle"],
    ["file_archive", { handles: [unknown], format: "zip" }, "unknown_handle"],
    ["file_extract", { handle: unknown }, "unknown_handle"],
  ])("%s of %j ends in a failed task", async (tool, args, code) => {
    const server = await startTestServer();
    const task = await outcome(await connect("a client of 2026-07-28", server.mcpUrl), tool, args);
    expect(task).toMatchObject({ status: "failed", error: { code } });
  });
});
