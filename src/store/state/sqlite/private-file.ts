/** Files that only their owner may read, from the first instant of their life. */
import { randomBytes } from "node:crypto";
import { constants, copyFileSync, existsSync, linkSync, mkdirSync, rmSync, writeFileSync } from "node:fs";

const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && "code" in error && error.code === code;

export function makePrivateDir(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
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
