/**
 * Temporary folders and child processes of a run, and their end: whatever way the run ends, also by Ctrl-C, no process stays and no
 * file is left behind.
 */
import type { ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type Medium = "tmpfs" | "disk";

const tmpfsRoot = "/dev/shm";

const folders = new Set<string>();
const children = new Set<ChildProcess>();

export interface MediaRoots {
  /** Null where the machine has none. */
  readonly tmpfs: string | null;
  readonly disk: string;
}

export function mediaRoots(diskRoot: string | null): MediaRoots {
  return { tmpfs: existsSync(tmpfsRoot) ? tmpfsRoot : null, disk: diskRoot ?? tmpdir() };
}

export function freeBytes(dir: string): number {
  const { bavail, bsize } = statfsSync(dir);
  return bavail * bsize;
}

export function makeFolder(root: string): string {
  const folder = mkdtempSync(join(root, "longshore-bench-"));
  folders.add(folder);
  return folder;
}

export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  folders.delete(folder);
}

/** The child is killed if it is still there when this process ends. */
export function adopt(child: ChildProcess): void {
  children.add(child);
  child.once("exit", () => children.delete(child));
}

function cleanUp(): void {
  for (const child of children) child.kill("SIGKILL");
  for (const folder of folders) {
    try {
      rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
    } catch (error) {
      process.stderr.write(`${folder} could not be removed: ${String(error)}\n`);
    }
  }
}

/** To be called once, before anything is made. */
export function cleanUpAtExit(): void {
  process.once("exit", cleanUp);
  for (const [signal, status] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)
    process.once(signal, () => process.exit(status));
}
