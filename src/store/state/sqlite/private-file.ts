/** Files that only their owner may read, from the first instant of their life. */
import { randomBytes } from "node:crypto";
import {
  accessSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { isFull, StateRefused } from "./failures.ts";

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

const dataDirAdvice = "Name another folder with --data-dir or LONGSHORE_DATA_DIR";

/**
 * Makes the data folder and those above it where they are missing; `durable`: they survive a power cut from now on.
 *
 * One by one: Node's `recursive` never comes to an end in folders that refuse new ones with ENOENT, as those of /proc do.
 */
export function makeDataDir(path: string, durable: boolean): void {
  const missing: string[] = [];
  let there = path;
  for (; !existsSync(there) && there !== dirname(there); there = dirname(there)) missing.unshift(there);
  if (!statSync(there).isDirectory()) {
    const what = missing.length === 0 ? there : `${path} cannot be made: ${there}`;
    throw new StateRefused(`The data folder ${what} is a file. ${dataDirAdvice}, or move the file.`);
  }
  for (const dir of missing) {
    try {
      makePrivateDir(dir);
    } catch (error) {
      if (isFull(error)) throw error;
      const why = error instanceof Error ? error.message : String(error);
      throw new StateRefused(
        `The data folder ${path} cannot be made: ${dirname(dir)} takes no new folder (${why}). ${dataDirAdvice}, or make it yourself.`,
      );
    }
  }
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch {
    throw new StateRefused(
      `The data folder ${path} may not be written to by this user. ${dataDirAdvice}, or change its permissions.`,
    );
  }
  if (durable) for (const dir of missing.reverse()) syncDir(dirname(dir));
}

/** Makes the folder where it is missing; the one above it must be there. */
export function makePrivateDir(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (!isCode(error, "EEXIST")) throw error;
  }
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
