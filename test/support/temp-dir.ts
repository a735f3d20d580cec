/** A folder of its own for a test, removed afterwards. */
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { onTestFinished } from "vitest";

export async function tempDir(): Promise<string> {
  const dir = await mkdtemp(path.join(os.tmpdir(), "longshore-test-"));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}
