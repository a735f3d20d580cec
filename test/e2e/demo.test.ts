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

test("the demo kills the server half-way, resumes from the acknowledged offset, and the digests agree", async () => {
  const temp = await tempDir();
  const run = startDemo(temp);
  expect(await run.exit, run.stderr()).toEqual({ status: 0, signal: null });
  const said = run.stdout();
  const figure = (what: string): number =>
    Number(new RegExp(`${what}: ([\\d,]+) bytes`).exec(said)?.[1]?.replaceAll(",", ""));
  expect(figure("acknowledged before the kill")).toBeGreaterThanOrEqual(48 * 2 ** 20);
  expect(figure("offset after the restart")).toBeGreaterThanOrEqual(figure("acknowledged before the kill"));
  expect(figure("resumed from")).toBe(figure("offset after the restart"));
  expect(new Set(said.match(/sha256 [0-9a-f]{64}/g)).size).toBe(1);
  expect(said).toContain("All of it held.");
  const pids = [...said.matchAll(/pid (\d+)/g)].map(([, pid = ""]) => pid);
  expect(pids.filter(isRunning)).toEqual([]);
  expect(await readdir(temp)).toEqual([]);
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
