/**
 * Opening a data folder's state: format, database, migrations and the lock of this process, all under an exclusive lock
 * on a file beside the database. SQLite's own locks are not enough for this: to make a database, to switch it to
 * write-ahead logging and to migrate it are several steps, and first starts that interleave them fail.
 */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import type { WorkerSettings } from "../protocol.ts";
import { Ballast } from "./ballast.ts";
import { SqliteConnection } from "./connection.ts";
import { isBusy, isFull, StateRefused } from "./failures.ts";
import { migrations, schemaVersion } from "./migrations.ts";
import { makeDataDir, makePrivateFile } from "./private-file.ts";
import { clearDeadLocks, hasLiveProcess, ProcessLock } from "./process-lock.ts";
import { tornLogBytes } from "./torn-log.ts";

/** Number of the layout of the data folder; raised when an older program could not live with what it finds. */
const format = "1";
const patienceMs = 30_000;

export interface OpenedState {
  readonly tornLogBytes: number;
  readonly connection: SqliteConnection;
  readonly lock: ProcessLock;
  readonly ballast: Ballast;
}

/** Tries until it works, while what is in the way is another connection; then throws what it met last. */
async function withPatience<T>(deadline: number, attempt: () => T): Promise<T> {
  for (;;) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error;
    }
    await sleep(5 + Math.random() * 20);
  }
}

function checkFormat(dataDir: string): void {
  const path = join(dataDir, "FORMAT");
  let found: string | null;
  try {
    found = readFileSync(path, "utf8").trim();
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
    found = null;
  }
  if (found === format) return;
  if (found !== null) {
    throw new StateRefused(
      `The data folder has format ${found}, and this version knows format ${format} only.`,
    );
  }
  const fresh = `${path}.new`;
  const file = openSync(fresh, "w", 0o600);
  try {
    writeFileSync(file, `${format}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(fresh, path);
}

/** Throws where the database is not of the version that this program knows. */
export function checkVersion(connection: SqliteConnection): void {
  const version = Number(connection.pragma("user_version"));
  if (version === schemaVersion) return;
  throw new StateRefused(
    version > schemaVersion
      ? `The state store was brought to version ${version} by a newer program; this one knows version ${schemaVersion}. Start the newer program.`
      : `The state store went back to version ${version} while this program, of version ${schemaVersion}, was running. Restart it.`,
  );
}

function migrate(connection: SqliteConnection): void {
  const version = Number(connection.pragma("user_version"));
  if (version < schemaVersion) {
    connection.command("BEGIN IMMEDIATE");
    try {
      for (const step of migrations.slice(version)) connection.exec(step);
      connection.exec(`PRAGMA user_version = ${schemaVersion}`);
      connection.command("COMMIT");
    } catch (error) {
      if (connection.inTransaction) connection.command("ROLLBACK");
      throw error;
    }
  }
  checkVersion(connection);
}

function openConnection(path: string, fsync: WorkerSettings["fsync"]): SqliteConnection {
  makePrivateFile(path);
  const connection = new SqliteConnection(path, fsync);
  try {
    connection.exec("PRAGMA journal_mode = WAL");
    const mode = connection.pragma("journal_mode");
    if (mode !== "wal")
      throw new StateRefused(`The file system of the data folder allows no write-ahead log (${mode}).`);
    migrate(connection);
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

export async function openDatabase(settings: WorkerSettings): Promise<OpenedState> {
  const ballast = new Ballast(settings.dataDir);
  makeDataDir(settings.dataDir, settings.fsync === "always");
  try {
    const opened = await open(settings, ballast);
    ballast.keep();
    return opened;
  } catch (error) {
    if (!isFull(error)) throw error;
  }
  // Log and locks of a first process need some space; it may be a sweep, started to make more.
  ballast.drop();
  try {
    return await open(settings, ballast);
  } finally {
    ballast.takeBack();
  }
}

async function open({ dataDir, fsync, processId }: WorkerSettings, ballast: Ballast): Promise<OpenedState> {
  const deadline = performance.now() + patienceMs;
  const lockPath = join(dataDir, "state.lock.sqlite");
  makePrivateFile(lockPath);
  const openingLock = new DatabaseSync(lockPath, { timeout: 0 });
  try {
    await withPatience(deadline, () => openingLock.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE"));
    checkFormat(dataDir);
    // While somebody else writes, the end of the log is his business.
    const torn = hasLiveProcess(dataDir) ? 0 : tornLogBytes(join(dataDir, "state.sqlite-wal"));
    // Processes that are closing, or writing already, may be in the way for a moment.
    const connection = await withPatience(deadline, () =>
      openConnection(join(dataDir, "state.sqlite"), fsync),
    );
    try {
      const lock = new ProcessLock(dataDir, processId);
      clearDeadLocks(dataDir);
      return { connection, lock, ballast, tornLogBytes: torn };
    } catch (error) {
      connection.close();
      throw error;
    }
  } finally {
    openingLock.close();
  }
}
