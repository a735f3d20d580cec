/** Faults of the medium in the middle of a group, on a connection of the test's own. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AnyOperation } from "../../../src/store/state/operation.ts";
import type { WorkerReply } from "../../../src/store/state/protocol.ts";
import { Ballast } from "../../../src/store/state/sqlite/ballast.ts";
import { SqliteConnection, type TransactionCommand } from "../../../src/store/state/sqlite/connection.ts";
import { GroupRunner } from "../../../src/store/state/sqlite/group-runner.ts";
import { migrations } from "../../../src/store/state/sqlite/migrations.ts";
import { transferOperations } from "../../../src/store/state/transfers/operations.ts";
import { newUpload } from "../../contract/transfer-state/fixture.ts";
import { makeDataDir, openRows, removeDataDir } from "./sqlite-fixture.ts";

let dataDir = "";
let connection: FaultyConnection;

const ballastBytes = (): number => statSync(join(dataDir, "ballast"), { throwIfNoEntry: false })?.size ?? 0;

const wholeBytes = 4 << 20;

/** A commit that fails as SQLite's would. */
class FaultyConnection extends SqliteConnection {
  failCommits: number[] = [];
  /** Done once, when a transaction has failed. */
  afterRollback: (() => void) | null = null;
  /** How large the ballast was at each commit. */
  ballastAtCommits: number[] = [];

  override command(text: TransactionCommand): void {
    if (text === "COMMIT") this.ballastAtCommits.push(ballastBytes());
    const errcode = text === "COMMIT" ? this.failCommits.shift() : undefined;
    if (errcode !== undefined) throw Object.assign(new Error("The commit failed"), { errcode });
    super.command(text);
    if (text !== "ROLLBACK") return;
    this.afterRollback?.();
    this.afterRollback = null;
  }
}

const operations = new Map<string, AnyOperation>(Object.entries(transferOperations));

/** Runs the requests as one group and waits for all the replies. */
function runGroup(requests: readonly (readonly [string, ...unknown[]])[]): Promise<WorkerReply[]> {
  return new Promise((resolve) => {
    const all: WorkerReply[] = [];
    const runner = new GroupRunner({
      connection,
      operations,
      ballast: new Ballast(dataDir),
      send: (replies) => {
        all.push(...replies);
        if (all.length === requests.length) resolve(all.sort((a, b) => a.id - b.id));
      },
    });
    runner.enqueue(requests.map(([operation, ...args], id) => ({ id, operation, args })));
  });
}

/** The one number that a query gives. */
function count(sql: string): number {
  const rows = openRows(dataDir);
  const [number] = Object.values(rows.prepare(sql).get() ?? {});
  rows.close();
  return Number(number);
}
const files = (): number => count("SELECT count(*) FROM upload");

beforeEach(async () => {
  dataDir = await makeDataDir();
  connection = new FaultyConnection(join(dataDir, "state.sqlite"), "never");
  connection.exec("PRAGMA journal_mode = WAL");
  for (const step of migrations) connection.exec(step);
  connection.exec(`PRAGMA user_version = ${migrations.length}`);
});
afterEach(async () => {
  connection.close();
  await removeDataDir(dataDir);
});

const creations = (count: number): [string, unknown][] =>
  Array.from({ length: count }, () => ["createUpload", newUpload()]);

describe("a group of writes", () => {
  it("is refused whole where its commit fails, and the next group works", async () => {
    connection.failCommits = [778 /* SQLITE_IOERR_WRITE */];
    const replies = await runGroup(creations(20));
    expect(replies[0]).toMatchObject({ failure: { code: "storage_unavailable", retryable: true } });
    // A slow machine makes a second group of the rest.
    const made = replies.filter((reply) => "value" in reply).length;
    expect(files()).toBe(made);
    for (const reply of await runGroup(creations(20)))
      expect(reply).toMatchObject({ value: { kind: "created" } });
    expect(files()).toBe(made + 20);
  });

  it("runs again where its commit finds the database busy", async () => {
    connection.failCommits = [5 /* SQLITE_BUSY */, 5];
    for (const reply of await runGroup(creations(20)))
      expect(reply).toMatchObject({ value: { kind: "created" } });
    expect(files()).toBe(20);
  });

  it("is refused whole with storage_full where the disk fills up in the middle, and what was there stays", async () => {
    await runGroup(creations(20));
    const before = count("PRAGMA page_count");
    connection.exec(`PRAGMA max_page_count = ${before + 5}`);
    const replies = await runGroup(creations(200));
    for (const reply of replies) {
      if ("failure" in reply) expect(reply.failure).toMatchObject({ code: "storage_full", retryable: true });
    }
    const made = replies.filter((reply) => "value" in reply).length;
    expect(made).toBeLessThan(150);
    expect(files()).toBe(20 + made);
    connection.exec("PRAGMA max_page_count = 100000");
    await runGroup(creations(20));
    expect(files()).toBe(40 + made);
  });

  it("on a full disk does in the space of the ballast what frees some, refuses the rest, and takes back what is left", async () => {
    const old = newUpload();
    await runGroup([["createUpload", old]]);
    expect(ballastBytes()).toBe(wholeBytes);
    connection.failCommits = [13 /* SQLITE_FULL */];
    connection.ballastAtCommits = [];
    const [creation, removal] = await runGroup([
      ["createUpload", newUpload()],
      ["removeUpload", old.handle, null],
    ]);
    expect(creation).toMatchObject({ failure: { code: "storage_full", retryable: true } });
    expect(removal).toMatchObject({ value: { removed: true } });
    expect(connection.ballastAtCommits).toEqual([wholeBytes, 0]);
    expect(ballastBytes()).toBe(wholeBytes);
    expect(files()).toBe(0);
  });

  it("waits for the ballast where another process that deletes has just had it", async () => {
    const old = newUpload();
    await runGroup([["createUpload", old]]);
    connection.failCommits = [13, 13];
    connection.afterRollback = () => {
      const other = openRows(dataDir);
      other.exec("INSERT INTO process VALUES ('p_other', 1, 1, 1)");
      other.close();
    };
    const [removal] = await runGroup([["removeUpload", old.handle, null]]);
    expect(removal).toMatchObject({ value: { removed: true } });
    expect(files()).toBe(0);
    expect(ballastBytes()).toBe(wholeBytes);
  });

  it("is refused whole where not even the ballast is enough, and none of it has happened", async () => {
    const old = newUpload();
    await runGroup([["createUpload", old]]);
    connection.failCommits = [13, 4874 /* SQLITE_IOERR_SHMSIZE */];
    const [removal] = await runGroup([["removeUpload", old.handle, null]]);
    expect(removal).toMatchObject({ failure: { code: "storage_full" } });
    expect(files()).toBe(1);
    expect(ballastBytes()).toBe(wholeBytes);
  });

  it("loses nothing but the operation that fails", async () => {
    const taken = newUpload();
    const replies = await runGroup([
      ["createUpload", taken],
      ["createUpload", newUpload({ ticket: taken.ticket })],
      ["nothingOfTheKind"],
      ["createUpload", newUpload()],
    ]);
    expect(replies.map((reply) => ("failure" in reply ? reply.failure.code : "fine"))).toEqual([
      "fine",
      "internal_error",
      "internal_error",
      "fine",
    ]);
    expect(files()).toBe(2);
  });
});
