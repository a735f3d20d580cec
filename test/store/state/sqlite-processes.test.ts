/** Several processes on one data folder, and what is left of one that was killed. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openSqliteState, type SqliteState } from "../../../src/store/state/sqlite.ts";
import { created, found, newUpload } from "../../contract/transfer-state/fixture.ts";
import {
  makeDataDir,
  type OtherProcess,
  openRows,
  recount,
  removeDataDir,
  startProcess,
} from "./sqlite-fixture.ts";

let dataDir = "";
let stores: SqliteState[] = [];
let others: OtherProcess[] = [];

const open = async (): Promise<SqliteState> => {
  const store = await openSqliteState({ dataDir, fsync: "always" });
  stores.push(store);
  return store;
};
const start = (what: string, ...more: string[]): OtherProcess => {
  const other = startProcess(what, dataDir, ...more);
  others.push(other);
  return other;
};

beforeEach(async () => {
  dataDir = await makeDataDir();
});
afterEach(async () => {
  await Promise.all(others.map((other) => other.end()));
  await Promise.all(stores.map((store) => store.close()));
  [stores, others] = [[], []];
  await removeDataDir(dataDir);
});

describe("SQLite state between processes", () => {
  it("what was acknowledged before a SIGKILL in the middle of many writes is there", async () => {
    const acknowledged = new Map<string, number>();
    for (let round = 0; round < 3; round += 1) {
      const writer = start("write");
      for (let lines = 0; lines < 1_000; lines += 1) {
        const [handle = "", offset = ""] = (await writer.line()).split(" ");
        acknowledged.set(handle, Number(offset));
      }
      writer.child.kill("SIGKILL");
      for (const line of await writer.rest()) {
        const [handle = "", offset = ""] = line.split(" ");
        if (handle.length === 35 && offset !== "") acknowledged.set(handle, Number(offset));
      }
    }
    const { transfers } = await open();
    for (const [handle, offset] of acknowledged) {
      const upload = await found(transfers, handle);
      expect(upload.offset).toBeGreaterThanOrEqual(offset);
      const bytes = (await transfers.segments(handle)).reduce((sum, { length }) => sum + length, 0);
      expect(bytes).toBe(upload.offset);
    }
    const rows = openRows(dataDir);
    expect(rows.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
    expect(await transfers.usage("ada")).toEqual(recount(rows, "ada"));
    rows.close();
  });

  it("while another process holds the database, writes are refused after 2 s and reads go on", async () => {
    const { transfers } = await open();
    const upload = await created(transfers);
    const holder = start("lock");
    expect(await holder.line()).toBe("locked");

    let turns = 0;
    let longestTurnMs = 0;
    let last = performance.now();
    const ticking = setInterval(() => {
      turns += 1;
      longestTurnMs = Math.max(longestTurnMs, performance.now() - last);
      last = performance.now();
    }, 5);
    const started = performance.now();
    let waiting = true;
    const writes = Promise.allSettled([
      transfers.createUpload(newUpload()),
      transfers.heartbeat("p_one"),
      transfers.removeUpload(upload.handle, null),
    ]).finally(() => {
      waiting = false;
    });
    let reads = 0;
    let slowestReadMs = 0;
    while (waiting) {
      const asked = performance.now();
      await found(transfers, upload.handle);
      slowestReadMs = Math.max(slowestReadMs, performance.now() - asked);
      reads += 1;
      await sleep(2);
    }
    clearInterval(ticking);
    const tookMs = performance.now() - started;
    for (const outcome of await writes) {
      expect(outcome).toMatchObject({
        status: "rejected",
        reason: { code: "storage_unavailable", options: { retryAfterSeconds: 1 } },
      });
    }
    expect(tookMs).toBeGreaterThan(1_900);
    expect(tookMs).toBeLessThan(3_500);
    expect(reads).toBeGreaterThan(20);
    expect(slowestReadMs).toBeLessThan(500);
    expect(turns).toBeGreaterThan(20);
    expect(longestTurnMs).toBeLessThan(500);

    const patient = transfers.createUpload(newUpload());
    holder.child.stdin.write("go\n");
    expect(await holder.line()).toBe("free");
    expect(await patient).toMatchObject({ kind: "created" });
    expect(await transfers.usage("ada")).toMatchObject({ files: 2 });
  });

  it("eight processes that open an empty folder at once all come up", async () => {
    const starting = Array.from({ length: 8 }, () => start("create"));
    const ids = (await Promise.all(starting.map((other) => other.rest()))).flat();
    expect(new Set(ids).size).toBe(8);
    const { transfers } = await open();
    expect(await transfers.usage("ada")).toEqual({ bytes: 8_000, files: 8 });
  });

  it("processes that add to one upload by its offset never lose an addition", async () => {
    const { transfers } = await open();
    const upload = await created(transfers, { sizeBytes: null });
    const adding = ["increment", "increment"].map((what) => start(what, upload.handle, "150"));
    await Promise.all(adding.map((other) => other.rest()));
    expect(await found(transfers, upload.handle)).toMatchObject({ offset: 300, leaseActive: false });
    expect(await transfers.usage("ada")).toEqual({ bytes: 300, files: 1 });
  });

  it("two busy processes both get on: neither is refused for the other", async () => {
    const { transfers } = await open();
    const writer = start("write");
    await writer.line();
    let slowestMs = 0;
    for (let count = 0; count < 50; count += 1) {
      const asked = performance.now();
      await created(transfers, { principal: "bob" });
      slowestMs = Math.max(slowestMs, performance.now() - asked);
    }
    expect(slowestMs).toBeLessThan(1_500);
    writer.child.kill("SIGKILL");
    await writer.rest();
  });

  it("a killed process is dead at once, a stopped one is not", async () => {
    const { transfers, liveness } = await open();
    const other = start("hold");
    const id = await other.line();
    expect((await transfers.processes()).processes).toMatchObject([{ id, pid: other.child.pid }]);
    expect(await liveness.isDead(id)).toBe(false);
    other.child.kill("SIGSTOP");
    await sleep(100);
    expect(await liveness.isDead(id)).toBe(false);
    await other.end("SIGKILL");
    expect(await liveness.isDead(id)).toBe(true);
    expect(readdirSync(join(dataDir, "processes"))).toContain(`${id}.sqlite`);
    await transfers.removeProcess(id);
    expect(readdirSync(join(dataDir, "processes"))).not.toContain(`${id}.sqlite`);
    expect(await liveness.isDead(id)).toBe(true);
  });

  it("a process that closed is dead and has left nothing", async () => {
    const { transfers, liveness } = await open();
    const other = start("hold");
    const id = await other.line();
    other.child.stdin.write("go\n");
    await other.rest();
    expect(await liveness.isDead(id)).toBe(true);
    expect((await transfers.processes()).processes).toEqual([]);
    expect(readdirSync(join(dataDir, "processes"))).toEqual([`${liveness.processId}.sqlite`]);
  });

  it("two stores that one process has opened see each other alive, and so do other processes", async () => {
    const [one, two] = [await open(), await open()];
    expect(one.liveness.processId).not.toBe(two.liveness.processId);
    expect(await one.liveness.isDead(two.liveness.processId)).toBe(false);
    expect(await two.liveness.isDead(one.liveness.processId)).toBe(false);
    expect(await one.liveness.isDead(one.liveness.processId)).toBe(false);
    expect(await start("judge", one.liveness.processId).rest()).toEqual(["false"]);
    expect(await start("judge", two.liveness.processId).rest()).toEqual(["false"]);
    await one.close();
    expect(await two.liveness.isDead(one.liveness.processId)).toBe(true);
    expect(await start("judge", two.liveness.processId).rest()).toEqual(["false"]);
  });

  it("what is no id of a process, or cannot be judged, is not called dead", async () => {
    const { liveness } = await open();
    for (const id of ["", "..", "../state", "a/../../state", "p_with space", "x".repeat(200)]) {
      expect(await liveness.isDead(id)).toBe(false);
    }
  });

  it("a process whose lock file was deleted makes it again with its heartbeat", async () => {
    const { transfers, liveness } = await open();
    await removeDataDir(join(dataDir, "processes", `${liveness.processId}.sqlite`));
    await transfers.heartbeat(liveness.processId);
    expect(await start("judge", liveness.processId).rest()).toEqual(["false"]);
  });

  it("an idle store keeps no process from ending", async () => {
    const forgetful = start("forget");
    const [id = ""] = await forgetful.rest();
    expect(forgetful.child.exitCode).toBe(0);
    const { liveness } = await open();
    expect(await liveness.isDead(id)).toBe(true);
  });
});
