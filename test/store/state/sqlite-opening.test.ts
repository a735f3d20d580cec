/** Opening, closing and failing of one SQLite store. */
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { schemaVersion } from "../../../src/store/state/sqlite/migrations.ts";
import { openSqliteState, type SqliteState } from "../../../src/store/state/sqlite.ts";
import { created, found, newUpload } from "../../contract/transfer-state/fixture.ts";
import { makeDataDir, openRows, removeDataDir } from "./sqlite-fixture.ts";

let dataDir = "";
let stores: SqliteState[] = [];

const open = async (report?: (fault: Error) => void): Promise<SqliteState> => {
  const store = await openSqliteState({ dataDir, fsync: "never", ...(report && { report }) });
  stores.push(store);
  return store;
};
const setVersion = (version: number): void => {
  const rows = openRows(dataDir);
  rows.exec(`PRAGMA user_version = ${version}`);
  rows.close();
};

beforeEach(async () => {
  dataDir = await makeDataDir();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await Promise.all(stores.map((store) => store.close()));
  stores = [];
  await removeDataDir(dataDir);
});

describe("SQLite state", () => {
  it("makes the data folder, and everything in it for its owner alone", async () => {
    dataDir = join(dataDir, "not", "there");
    const { transfers } = await open();
    await created(transfers);
    expect(statSync(dataDir).mode & 0o777).toBe(0o700);
    expect(readFileSync(join(dataDir, "FORMAT"), "utf8")).toBe("1\n");
    const names = readdirSync(dataDir, { recursive: true, encoding: "utf8" });
    expect(names).toContain("state.sqlite-wal");
    for (const name of names) {
      const stat = statSync(join(dataDir, name));
      expect([name, stat.mode & 0o777]).toEqual([name, stat.isDirectory() ? 0o700 : 0o600]);
    }
  });

  it("has the same records after closing and opening, and leaves one file of state", async () => {
    const first = await open();
    const upload = await created(first.transfers);
    await first.close();
    expect(readdirSync(dataDir).sort()).toEqual([
      ...["FORMAT", "ballast", "processes", "state.lock.sqlite", "state.sqlite"],
    ]);
    expect(readdirSync(join(dataDir, "processes"))).toEqual([]);
    const second = await open();
    expect(await found(second.transfers, upload.handle)).toEqual(upload);
  });

  it("answers what was asked before it was closed, and refuses what comes after", async () => {
    const store = await open();
    const asked = Array.from({ length: 300 }, () => store.transfers.createUpload(newUpload()));
    await Promise.all([store.close(), store.close()]);
    for (const outcome of await Promise.all(asked)) expect(outcome.kind).toBe("created");
    await expect(store.transfers.usage("ada")).rejects.toMatchObject({ code: "storage_unavailable" });
  });

  it("refuses a folder of another format and says which", async () => {
    await (await open()).close();
    writeFileSync(join(dataDir, "FORMAT"), "2\n");
    await expect(open()).rejects.toMatchObject({
      code: "storage_unavailable",
      retryable: false,
      message: expect.stringContaining("format 2"),
    });
  });

  it("refuses a schema of a newer version and says so", async () => {
    await (await open()).close();
    setVersion(1_000);
    await expect(open()).rejects.toMatchObject({
      code: "storage_unavailable",
      retryable: false,
      message: expect.stringContaining("newer"),
    });
  });

  it("changes nothing any more once a newer program has migrated, and still reads", async () => {
    const { transfers } = await open();
    const upload = await created(transfers);
    setVersion(1_000);
    await expect(transfers.createUpload(newUpload())).rejects.toMatchObject({
      code: "storage_unavailable",
      retryable: false,
      message: expect.stringContaining("newer"),
    });
    expect(await found(transfers, upload.handle)).toEqual(upload);
    expect(await transfers.usage("ada")).toMatchObject({ files: 1 });
    setVersion(schemaVersion);
    await created(transfers);
  });

  it("refuses a folder that cannot be one, and says where it ends and what to do", async () => {
    const file = join(dataDir, "file");
    writeFileSync(file, "");
    for (const [folder, message] of [
      [file, `The data folder ${file} is a file.`],
      [join(file, "folder"), `The data folder ${join(file, "folder")} cannot be made: ${file} is a file.`],
      ...(process.platform === "linux"
        ? [["/proc/nope/deep", "The data folder /proc/nope/deep cannot be made: /proc takes no new folder"]]
        : []),
    ] as [string, string][])
      await expect(openSqliteState({ dataDir: folder, fsync: "never" })).rejects.toMatchObject({
        code: "storage_unavailable",
        retryable: false,
        message: expect.stringContaining(message),
      });
  });

  it("refuses a database that is none", async () => {
    writeFileSync(
      join(dataDir, "state.sqlite"),
      "This is not a database, whatever its name says.".repeat(100),
    );
    await expect(open()).rejects.toMatchObject({ code: "storage_unavailable" });
  });

  it("refuses requests beyond ten thousand that wait, and answers those before", async () => {
    const { transfers } = await open();
    const outcomes = await Promise.allSettled(
      Array.from({ length: 10_050 }, () => transfers.findUpload("fh_none")),
    );
    const refused = outcomes.filter(({ status }) => status === "rejected");
    expect(refused).toHaveLength(50);
    for (const outcome of refused) expect(outcome).toMatchObject({ reason: { code: "storage_unavailable" } });
    expect(await transfers.findUpload("fh_none")).toBeNull();
  });

  it("rejects all that waits, and all that comes, once its worker has died, and reports it", async () => {
    const posted = vi.spyOn(Worker.prototype, "postMessage");
    const reports: Error[] = [];
    const store = await open((fault) => reports.push(fault));
    await created(store.transfers);
    const worker: unknown = posted.mock.contexts[0];
    if (!(worker instanceof Worker)) throw new Error("No worker");
    const asked = Promise.allSettled([
      store.transfers.usage("ada"),
      store.transfers.createUpload(newUpload()),
    ]);
    await worker.terminate();
    for (const outcome of await asked) {
      if (outcome.status === "rejected")
        expect(outcome.reason).toMatchObject({ code: "storage_unavailable" });
    }
    await expect(store.transfers.usage("ada")).rejects.toMatchObject({ code: "storage_unavailable" });
    expect(reports).toHaveLength(1);
    await store.close();
  });

  it("tells subscribers of changes of its own at once and of other stores' soon, until they leave", async () => {
    const [one, two] = [await open(), await open()];
    const heard = vi.fn();
    const leave = one.changes.subscribe(heard);
    await created(one.transfers);
    expect(heard).toHaveBeenCalledTimes(1);
    await one.transfers.usage("ada");
    await one.transfers.heartbeat(one.liveness.processId);
    expect(heard).toHaveBeenCalledTimes(1);
    await created(two.transfers);
    await vi.waitFor(() => expect(heard).toHaveBeenCalledTimes(2), { timeout: 2_000 });
    leave();
    leave();
    await created(one.transfers);
    await created(two.transfers);
    await sleep(700);
    expect(heard).toHaveBeenCalledTimes(2);
  });

  it("is not hurt by a subscriber that throws", async () => {
    const reports: Error[] = [];
    const store = await open((fault) => reports.push(fault));
    const heard = vi.fn();
    store.changes.subscribe(() => {
      throw new Error("Mine");
    });
    store.changes.subscribe(heard);
    await created(store.transfers);
    expect(heard).toHaveBeenCalledTimes(1);
    expect(reports.map(({ message }) => message)).toEqual(["Mine"]);
  });
});
