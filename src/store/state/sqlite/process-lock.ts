/**
 * How processes know that one of them is dead: each holds, for as long as it lives, an exclusive lock on a small SQLite
 * file of its own, which the operating system drops however the process ends. A stopped or slow process keeps its lock.
 *
 * SQLite is used for the lock because it keeps account of the locks within one process too, so that two stores that one
 * process has opened see each other's.
 */
import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { isCannotOpen } from "./failures.ts";
import { makePrivateDir, makePrivateFile } from "./private-file.ts";

const extension = ".sqlite";

/** What may be part of a file name; anything else is no id of ours and nothing is said about it. */
const idPattern = /^[A-Za-z0-9_-]{8,100}$/;

const lockDir = (dataDir: string): string => join(dataDir, "processes");
const lockFile = (dataDir: string, processId: string): string =>
  join(lockDir(dataDir), processId + extension);

/** Throws where another connection holds the lock (BUSY), or the file cannot be opened. Never makes the file. */
function lockExclusively(path: string): DatabaseSync {
  const url = pathToFileURL(path);
  url.searchParams.set("mode", "rw");
  const database = new DatabaseSync(url, { timeout: 0 });
  try {
    // Nothing is ever written, so there is nothing to leave a journal for.
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    throw error;
  }
  return database;
}

export class ProcessLock {
  readonly #path: string;
  #database: DatabaseSync;
  #inode: number;

  constructor(dataDir: string, processId: string) {
    makePrivateDir(lockDir(dataDir));
    this.#path = lockFile(dataDir, processId);
    makePrivateFile(this.#path);
    this.#database = lockExclusively(this.#path);
    this.#inode = statSync(this.#path).ino;
  }

  /** Takes the lock again where somebody has removed its file: without one this process would pass for dead. */
  keep(): void {
    if (statSync(this.#path, { throwIfNoEntry: false })?.ino === this.#inode) return;
    makePrivateFile(this.#path);
    const lost = this.#database;
    this.#database = lockExclusively(this.#path);
    this.#inode = statSync(this.#path).ino;
    lost.close();
  }

  release(): void {
    rmSync(this.#path, { force: true });
    this.#database.close();
  }
}

/** Runs `meanwhile` with the lock of a process that is certainly dead; false where it lives or that cannot be told. */
function ifDead(dataDir: string, processId: string, meanwhile: (path: string) => void): boolean {
  if (!idPattern.test(processId) || !existsSync(lockDir(dataDir))) return false;
  const path = lockFile(dataDir, processId);
  let database: DatabaseSync;
  try {
    database = lockExclusively(path);
  } catch (error) {
    // A process has its file before anybody learns its id, so no file means that it has ended.
    return isCannotOpen(error) && statSync(path, { throwIfNoEntry: false }) === undefined;
  }
  try {
    meanwhile(path);
  } finally {
    database.close();
  }
  return true;
}

export const isDead = (dataDir: string, processId: string): boolean => ifDead(dataDir, processId, () => {});

/** Whether any process may have the store open. */
export const hasLiveProcess = (dataDir: string): boolean =>
  existsSync(lockDir(dataDir)) &&
  readdirSync(lockDir(dataDir)).some(
    (name) => name.endsWith(extension) && !isDead(dataDir, name.slice(0, -extension.length)),
  );

/** Removes the lock file of a process if it is dead. */
export function clearLock(dataDir: string, processId: string): void {
  ifDead(dataDir, processId, (path) => rmSync(path, { force: true }));
}

/**
 * Removes what dead processes left behind; their missing locks go on saying that they are dead. Only while nobody opens
 * the store: a lock file is made a moment before it is locked.
 */
export function clearDeadLocks(dataDir: string): void {
  for (const name of readdirSync(lockDir(dataDir))) {
    if (name.endsWith(extension)) clearLock(dataDir, name.slice(0, -extension.length));
  }
}
