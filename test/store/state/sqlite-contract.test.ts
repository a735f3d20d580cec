import { afterAll, beforeAll } from "vitest";
import { openSqliteState, type SqliteState } from "../../../src/store/state/sqlite.ts";
import type { StateUnderTest } from "../../contract/transfer-state/fixture.ts";
import { transferStateContract } from "../../contract/transfer-state.ts";
import { makeDataDir, moveBack, openRows, recount, removeDataDir } from "./sqlite-fixture.ts";

let dataDir = "";
let stores: readonly SqliteState[] = [];

// Two workers take longer to start than a test to run: they stay, and the tables are emptied.
beforeAll(async () => {
  dataDir = await makeDataDir();
  // The contract is about what is decided, not about power cuts.
  stores = await Promise.all([
    openSqliteState({ dataDir, fsync: "never" }),
    openSqliteState({ dataDir, fsync: "never" }),
  ]);
});

afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await removeDataDir(dataDir);
});

transferStateContract("SQLite", async (): Promise<StateUnderTest> => {
  const [one, two] = stores;
  if (one === undefined || two === undefined) throw new Error("The stores did not open");
  const rows = openRows(dataDir);
  return {
    state: one.transfers,
    other: two.transfers,
    passTime: async (ms) => moveBack(rows, ms),
    recount: async (principal) => recount(rows, principal),
    cleanup: async () => {
      for (const table of ["segment", "upload", "garbage", "usage", "process"])
        rows.exec(`DELETE FROM ${table}`);
      rows.close();
    },
  };
});
