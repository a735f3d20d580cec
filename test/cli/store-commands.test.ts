/** The commands that work on the data folder, beside a running server. */
import { existsSync } from "node:fs";
import { open, readdir } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { run, startBuiltServer } from "../support/built-server.ts";
import { tempDir } from "../support/temp-dir.ts";
import { base64, created, head } from "../support/tus-requests.ts";
import { waitUntil } from "../support/wait-until.ts";
import { ended, me, openJobs, passTime } from "../tasks/task-store.ts";

const tus = { "Tus-Resumable": "1.0.0" };

describe("longshore sweep", () => {
  test("tells what it removed, beside a running server", async () => {
    const dataDir = await tempDir();
    await startBuiltServer(dataDir);
    const text = await run(["sweep", "--data-dir", dataDir]);
    expect([text.status, text.stdout]).toEqual([
      0,
      "Marked as expired: 0. Removed: 0 uploads, 0 tasks, 0 files on disk. Taken over from dead processes: 0.\n",
    ]);
    const json = await run(["sweep", "--data-dir", dataDir, "--json"]);
    expect(JSON.parse(json.stdout)).toEqual({
      markedExpired: 0,
      removedUploads: 0,
      removedTasks: 0,
      removedBlobs: 0,
      adoptedOrphans: 0,
      waitingBlobs: 0,
      waitsUntil: null,
    });
  });

  test("tells how many deleted files wait for their time, and until when", async () => {
    const dataDir = await tempDir();
    const server = await startBuiltServer(dataDir, ["--min-free-bytes", "0"]);
    const before = Date.now();
    for (const name of ["one", "two"]) {
      const answer = await fetch(`${server.publicUrl}/files`, {
        method: "POST",
        headers: { ...tus, "Upload-Length": "3", "Content-Type": "application/offset+octet-stream" },
        body: name,
      });
      await fetch(String(answer.headers.get("Location")), { method: "DELETE", headers: tus });
    }
    const { stdout } = await run(["sweep", "--data-dir", dataDir, "--json"]);
    const report = JSON.parse(stdout);
    expect(report).toMatchObject({ removedBlobs: 0, waitingBlobs: 2 });
    const until = Date.parse(report.waitsUntil);
    expect(until).toBeGreaterThanOrEqual(before + 3_600_000);
    expect(until).toBeLessThanOrEqual(Date.now() + 3_600_000);
    const text = await run(["sweep", "--data-dir", dataDir]);
    expect(text.stdout).toMatch(
      /\nDeleted and still on disk: 2 files\. A sweep removes the first of them after \d{4}-.*Z\.\n$/,
    );
  });

  test("marks what is past its time", async () => {
    const dataDir = await tempDir();
    const server = await startBuiltServer(dataDir, ["--upload-ttl", "1s"]);
    const url = await created(server.publicUrl, { "Upload-Length": "10" });
    await waitUntil(async () => (await head(url)).status === 410);
    const { stdout } = await run(["sweep", "--data-dir", dataDir, "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ markedExpired: 1, removedUploads: 0 });
  });

  test("removes tasks that are past their time", async () => {
    const store = await openJobs(async () => "done");
    const { task } = await store.tasks.start(me, { kind: "job", args: null, ttlMs: 60_000 });
    await ended(store.tasks, task.taskId);
    for (const [passed, removed] of [
      [61_000, 0],
      [3_600_001, 1],
    ] as const) {
      passTime(store, passed);
      const { stdout } = await run(["sweep", "--data-dir", store.dataDir, "--json"]);
      expect(JSON.parse(stdout)).toMatchObject({ removedTasks: removed });
    }
    const { stdout } = await run(["sweep", "--data-dir", store.dataDir]);
    expect(stdout).toContain("Removed: 0 uploads, 0 tasks, 0 files on disk.");
  });

  test("makes no data folder where there is none", async () => {
    const dataDir = path.join(await tempDir(), "mistyped");
    const { status, stderr } = await run(["sweep", "--data-dir", dataDir]);
    expect([status, stderr]).toEqual([1, `There is no data folder at ${dataDir}.\n`]);
    expect(existsSync(dataDir)).toBe(false);
  });
});

describe("longshore verify", () => {
  /** One file that is kept with its record, and one that is a file of its own. */
  async function storeWithFiles() {
    const dataDir = await tempDir();
    const server = await startBuiltServer(dataDir);
    const put = async (filename: string, text: string): Promise<string> => {
      const url = await created(server.publicUrl, {
        "Upload-Length": String(text.length),
        "Upload-Metadata": `filename ${base64(filename)}`,
      });
      const response = await fetch(url, { method: "PUT", body: text });
      return ((await response.json()) as { handle: string }).handle;
    };
    return { dataDir, good: await put("good.txt", "hello"), bad: await put("bad.txt", "world".repeat(4000)) };
  }

  test("reads every file beside a running server, and ends with 0 where all are good", async () => {
    const { dataDir } = await storeWithFiles();
    const text = await run(["verify", "--data-dir", dataDir]);
    expect([text.status, text.stdout]).toEqual([0, "Checked: 2 files, 20005 bytes. Faults: 0.\n"]);
    const json = await run(["verify", "--data-dir", dataDir, "--json"]);
    expect(JSON.parse(json.stdout)).toEqual({ checkedFiles: 2, checkedBytes: 20_005, faults: [] });
  });

  test("names every file whose bytes are not those received, repairs nothing, and ends with 1", async () => {
    const { dataDir, bad } = await storeWithFiles();
    const folder = path.join(dataDir, "blobs", bad.slice(-1));
    const blob = (await readdir(folder)).find((name) => name.startsWith(bad.slice(3))) ?? "";
    const file = await open(path.join(folder, blob), "r+");
    await file.write("W", 0);
    await file.close();
    for (let time = 0; time < 2; time += 1) {
      const { status, stdout } = await run(["verify", "--data-dir", dataDir]);
      expect(status).toBe(1);
      expect(stdout).toMatch(
        new RegExp(`^${bad} "bad.txt": digest, .*\nChecked: 2 files, 20005 bytes. Faults: 1.\n$`),
      );
    }
    const json = await run(["verify", "--data-dir", dataDir, "--json"]);
    expect(json.status).toBe(1);
    expect(JSON.parse(json.stdout)).toMatchObject({
      checkedFiles: 2,
      faults: [{ handle: bad, filename: "bad.txt", fault: "digest", detail: expect.any(String) }],
    });
  });

  test("makes no data folder where there is none", async () => {
    const { status, stdout } = await run([
      "verify",
      "--json",
      "--data-dir",
      path.join(await tempDir(), "mistyped"),
    ]);
    expect(status).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      status: "failed",
      error: { message: expect.stringContaining("no data folder") },
    });
  });
});
