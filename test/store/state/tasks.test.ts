import { afterAll, beforeAll, expect } from "vitest";
import { openSqliteState, type SqliteState } from "../../../src/store/state/sqlite.ts";
import { taskStateContract } from "../../contract/task-state.ts";
import { makeDataDir, openRows, removeDataDir } from "./sqlite-fixture.ts";

let dataDir = "";
let stores: readonly SqliteState[] = [];

// Two workers take longer to start than a test to run: they stay, and the tables are emptied.
beforeAll(async () => {
  dataDir = await makeDataDir();
  stores = await Promise.all([
    openSqliteState({ dataDir, fsync: "never" }),
    openSqliteState({ dataDir, fsync: "never" }),
  ]);
});

afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await removeDataDir(dataDir);
});

const timeColumns = [
  "created_at",
  "updated_at",
  "ended_at",
  "expires_at",
  "deadline_at",
  "marked_at",
  "wake_at",
];

taskStateContract("SQLite", async () => {
  const [one, two] = stores;
  if (one === undefined || two === undefined) throw new Error("The stores did not open");
  const rows = openRows(dataDir);
  return {
    state: one.tasks,
    other: two.tasks,
    passTime: async (ms) => {
      rows.exec(`UPDATE task SET ${timeColumns.map((column) => `${column} = ${column} - ${ms}`).join(", ")}`);
    },
    taskIds: async () =>
      rows
        .prepare("SELECT task_id FROM task")
        .all()
        .map(({ task_id }) => String(task_id)),
    cleanup: async () => {
      rows.exec("DELETE FROM task");
      for (const table of ["task_payload", "task_key", "step", "question"]) {
        expect(rows.prepare(`SELECT count(*) AS n FROM ${table}`).get()).toEqual({ n: 0 });
      }
      rows.close();
    },
  };
});
