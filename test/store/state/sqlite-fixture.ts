/** Throw-away data folders with SQLite state, ways around the store to its rows, and other processes to share it with. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";

const timeColumns = {
  upload: ["created_at", "updated_at", "completed_at", "expires_at", "marked_at"],
  ticket: ["created_at", "expires_at"],
  garbage: ["since"],
  process: ["started_at", "seen_at"],
};

export const makeDataDir = (): Promise<string> => mkdtemp(join(tmpdir(), "longshore-state-"));
export const removeDataDir = (dataDir: string): Promise<void> =>
  rm(dataDir, { recursive: true, force: true });

/** A connection of the test's own; it waits for the store's. */
export function openRows(dataDir: string): DatabaseSync {
  return new DatabaseSync(join(dataDir, "state.sqlite"), { timeout: 5_000 });
}

/** As if this long had passed. */
export function moveBack(rows: DatabaseSync, ms: number): void {
  rows.exec("BEGIN IMMEDIATE");
  for (const [table, columns] of Object.entries(timeColumns)) {
    rows.exec(`UPDATE ${table} SET ${columns.map((column) => `${column} = ${column} - ${ms}`).join(", ")}`);
  }
  rows.exec("COMMIT");
}

/** What the records of a principal count, from the records. */
export function recount(rows: DatabaseSync, principal: string): { bytes: number; files: number } {
  const sum = rows
    .prepare(
      "SELECT coalesce(sum(coalesce(size_bytes, offset_bytes)), 0) AS bytes, count(*) AS files FROM upload WHERE principal = ?",
    )
    .get(principal);
  return { bytes: Number(sum?.bytes), files: Number(sum?.files) };
}

export interface OtherProcess {
  readonly child: ChildProcessWithoutNullStreams;
  /** The next line it says; rejects where it ends instead. */
  line(): Promise<string>;
  /** All lines until it ends. */
  rest(): Promise<string[]>;
  /** Ends it and waits for the end. */
  end(signal?: NodeJS.Signals): Promise<void>;
}

const childScript = fileURLToPath(new URL("./state-child.ts", import.meta.url));

/** Another process that does this (see `state-child.ts`) with the folder. */
export function startProcess(what: string, dataDir: string, ...more: string[]): OtherProcess {
  const child = spawn(process.execPath, ["--no-warnings", childScript, what, dataDir, ...more]);
  let complaints = "";
  child.stderr.on("data", (data: Buffer) => {
    complaints += data.toString();
  });
  const ended = once(child, "close");
  const reader: Interface = createInterface({ input: child.stdout });
  const lines = reader[Symbol.asyncIterator]();
  return {
    child,
    async line() {
      const next = await lines.next();
      if (next.done === true) throw new Error(`The process '${what}' ended: ${complaints}`);
      return next.value;
    },
    async rest() {
      const all: string[] = [];
      for (let next = await lines.next(); next.done !== true; next = await lines.next()) all.push(next.value);
      await ended;
      if (child.exitCode !== 0 && child.signalCode === null)
        throw new Error(`'${what}' failed: ${complaints}`);
      return all;
    },
    async end(signal = "SIGKILL") {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      await ended;
    },
  };
}
