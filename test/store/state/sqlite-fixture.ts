/** Throw-away data folders with SQLite state, and a way around the store to its rows. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openSqliteState } from "../../../src/store/state/sqlite.ts";
import type { StateUnderTest } from "../../contract/transfer-state/fixture.ts";

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

export function moveBack(rows: DatabaseSync, ms: number): void {
  rows.exec("BEGIN IMMEDIATE");
  for (const [table, columns] of Object.entries(timeColumns)) {
    rows.exec(`UPDATE ${table} SET ${columns.map((column) => `${column} = ${column} - ${ms}`).join(", ")}`);
  }
  rows.exec("COMMIT");
}

export async function openSqliteTwice(): Promise<StateUnderTest> {
  const dataDir = await makeDataDir();
  // The contract is about what is decided, not about power cuts.
  const [one, two] = await Promise.all([
    openSqliteState({ dataDir, fsync: "never" }),
    openSqliteState({ dataDir, fsync: "never" }),
  ]);
  const rows = openRows(dataDir);
  return {
    state: one.transfers,
    other: two.transfers,
    passTime: async (ms) => moveBack(rows, ms),
    recount: async (principal) => {
      const sum = rows
        .prepare(
          "SELECT coalesce(sum(coalesce(size_bytes, offset_bytes)), 0) AS bytes, count(*) AS files FROM upload WHERE principal = ?",
        )
        .get(principal);
      return { bytes: Number(sum?.bytes), files: Number(sum?.files) };
    },
    cleanup: async () => {
      rows.close();
      await Promise.all([one.close(), two.close()]);
      await removeDataDir(dataDir);
    },
  };
}
