/** Files that only their owner may read, from the first instant of their life. */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";

const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && "code" in error && error.code === code;

function syncDir(path: string): void {
  const dir = openSync(path, "r");
  try {
    fsyncSync(dir);
  } finally {
    closeSync(dir);
  }
}

/** Makes the folder and those above it where they are missing; `durable`: they survive a power cut from now on. */
export function makePrivateDir(path: string, durable: boolean): void {
  const topmost = mkdirSync(path, { recursive: true, mode: 0o700 });
  if (topmost === undefined || !durable) return;
  const highest = dirname(topmost);
  let dir = path;
  do {
    dir = dirname(dir);
    syncDir(dir);
  } while (dir !== highest && dir !== dirname(dir));
}

/**
 * Makes an empty file, unless there is one. The file is made under another name and linked into place: to open and
 * close a database's file here would drop the locks that this process holds on it elsewhere (POSIX locks belong to the
 * process and end with the first descriptor that is closed).
 */
export function makePrivateFile(path: string): void {
  if (existsSync(path)) return;
  const fresh = `${path}.${randomBytes(8).toString("hex")}.new`;
  writeFileSync(fresh, "", { mode: 0o600, flag: "wx" });
  try {
    linkSync(fresh, path);
  } catch (error) {
    if (isCode(error, "EEXIST")) return;
    // File systems without links.
    try {
      copyFileSync(fresh, path, constants.COPYFILE_EXCL);
    } catch (copyError) {
      if (!isCode(copyError, "EEXIST")) throw copyError;
    }
  } finally {
    rmSync(fresh, { force: true });
  }
}
