/** `npm run demo` holds what it promises, says so, and leaves nothing behind. */
import { spawn } from "node:child_process";
import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { cleanEnv, follow } from "../support/built-server.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitUntil } from "../support/wait-until.ts";

const demo = fileURLToPath(new URL("../../demo/main.ts", import.meta.url));

function startDemo(temp: string) {
  return follow(
    spawn(process.execPath, [demo], { env: cleanEnv({ TMPDIR: temp }), stdio: ["ignore", "pipe", "pipe"] }),
  );
}

function isRunning(pid: string): boolean {
  try {
    return process.kill(Number(pid), 0);
  } catch {
    return false;
  }
}

/** One run to its end, for all tests that read what it said. */
let finished: Promise<{ status: number | null; said: string; errors: string; left: string[] }> | undefined;

function finishedDemo() {
  finished ??= (async () => {
    const temp = await tempDir();
    const run = startDemo(temp);
    const { status } = await run.exit;
    return { status, said: run.stdout(), errors: run.stderr(), left: await readdir(temp) };
  })();
  return finished;
}

test("the demo kills the server half-way, resumes from the acknowledged offset, and the digests agree", async () => {
  const { status, said, errors, left } = await finishedDemo();
  expect(status, errors).toBe(0);
  const figure = (what: string): number =>
    Number(new RegExp(`${what}: ([\\d,]+) bytes`).exec(said)?.[1]?.replaceAll(",", ""));
  expect(figure("acknowledged before the kill")).toBeGreaterThanOrEqual(48 * 2 ** 20);
  expect(figure("offset after the restart")).toBeGreaterThanOrEqual(figure("acknowledged before the kill"));
  expect(figure("resumed from")).toBe(figure("offset after the restart"));
  const sent = /^ 2\. .*\n +sha256 ([0-9a-f]{64})$/m.exec(said)?.[1];
  expect(said).toMatch(new RegExp(`upload_status\n +status complete, sha256 ${sent}: agrees`));
  expect(said).toMatch(new RegExp(`file_download.*\n +[\\d,]+ bytes, sha256 ${sent}: agrees`));
  expect(said).toContain("All of it held.");
  const pids = [...said.matchAll(/pid (\d+)/g)].map(([, pid = ""]) => pid);
  expect(pids.filter(isRunning)).toEqual([]);
  expect(left).toEqual([]);
});

test("the demo kills the server while an archive is made; the next server completes the same task, and its file is whole", async () => {
  const { status, said, errors } = await finishedDemo();
  expect(status, errors).toBe(0);
  const killed =
    /killed with SIGKILL in the middle of the task \(pid (\d+)\)\n +task (task_\w+), status working, progress before the kill: (\d+) %\n/.exec(
      said,
    );
  const [, pid, taskId, progress] = killed ?? [];
  expect(said).toMatch(
    new RegExp(`file_archive, a long task\n +task ${taskId}, status working\n.*\\(pid ${pid}\\)`),
  );
  expect(Number(progress)).toBeGreaterThan(0);
  expect(Number(progress)).toBeLessThan(100);

  const completed =
    /again: pid (\d+); it took the task up and finished it .*\n +task (\S+), status completed\n/.exec(said);
  expect(completed?.[1]).not.toBe(pid);
  expect(completed?.[2]).toBe(taskId);
  expect(said).toMatch(/The archive was fetched\n +fh_\w+, [\d,]+ bytes, sha256 [0-9a-f]{64}: agrees\n/);
  const sent = /^ 2\. .*\n +sha256 ([0-9a-f]{64})$/m.exec(said)?.[1];
  expect(said).toMatch(new RegExp(`file_extract.*\n +sample\\.bin, sha256 ${sent}: agrees\n`));
});

test("a demo that is interrupted ends its server and removes its folder", async () => {
  const temp = await tempDir();
  const run = startDemo(temp);
  await waitUntil(() => run.stdout().includes("Made a file"));
  run.kill("SIGINT");
  expect((await run.exit).status).toBe(1);
  const [, pid = ""] = /pid (\d+)/.exec(run.stdout()) ?? [];
  expect(isRunning(pid)).toBe(false);
  expect(await readdir(temp)).toEqual([]);
});
