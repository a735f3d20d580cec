/** No operation walks a whole table: what costs the same at ten records costs the same at a million. */
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AnyOperation } from "../../../src/store/state/operation.ts";
import { sqliteQueries } from "../../../src/store/state/sqlite/connection.ts";
import { migrations } from "../../../src/store/state/sqlite/migrations.ts";
import { transferOperations } from "../../../src/store/state/transfers/operations.ts";
import type { TransferState } from "../../../src/transfer/state-store.ts";
import {
  beginOf,
  commitOf,
  dayMs,
  newBlob,
  newTicket,
  newUpload,
} from "../../contract/transfer-state/fixture.ts";

let database: DatabaseSync;
let plans: string[] = [];

beforeEach(() => {
  database = new DatabaseSync(":memory:");
  for (const step of migrations) database.exec(step);
  plans = [];
});
afterEach(() => database.close());

/** Drives the operation as a store does, and notes how SQLite finds the rows of each query. */
function drive(operation: AnyOperation, args: readonly unknown[]): unknown {
  const steps = operation.run({ db: sqliteQueries, now: Date.now() }, ...(args as never[]));
  let step = steps.next();
  while (step.done !== true) {
    const { sql } = step.value;
    const parameters = step.value.parameters as readonly SQLInputValue[];
    for (const line of database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters)) {
      plans.push(`${String(line.detail)}  <-  ${sql}`);
    }
    const before = Number(database.prepare("SELECT total_changes() AS n").get()?.n);
    const rows = database.prepare(sql).all(...parameters);
    const changes = Number(database.prepare("SELECT total_changes() AS n").get()?.n) - before;
    step = steps.next({ rows, changes });
  }
  return step.value;
}

const call = <Name extends keyof typeof transferOperations>(
  name: Name,
  ...args: Parameters<TransferState[Name]>
): Awaited<ReturnType<TransferState[Name]>> =>
  drive(transferOperations[name], args) as Awaited<ReturnType<TransferState[Name]>>;

/** An operation of each kind, with a record to work on. */
function everyOperation(): void {
  const idempotency = { tool: "t", key: "k", argumentsHash: "a" };
  const input = newUpload({
    idempotency,
    sizeBytes: null,
    quota: { maxBytes: 1e9, maxFiles: 9 },
    begin: { owner: "p", blob: "b" },
  });
  const outcome = call("createUpload", input);
  call("createUpload", { ...input, ticket: newTicket() });
  if (outcome.kind !== "created" || outcome.segment === null) throw new Error(outcome.kind);
  const { upload, segment } = outcome;
  call("findByTicket", input.ticket.hash);
  call("findUpload", upload.handle);
  for (const status of [null, "receiving", "verifying", "complete", "mismatch", "expired"] as const) {
    call("listUploads", { principal: "ada", status, limit: 30, after: { createdAt: 0, handle: "a" } });
  }
  call("completeUploads", "a", 10);
  call("segments", upload.handle);
  call("addTicket", upload.handle, "ada", newTicket());
  call("requestLease", upload.handle, 1, "if_idle");
  call("leaseRequests", "p");
  call("refuseLease", upload.handle, 1);
  call("commitWrite", commitOf({ upload, segment }, 10, { active: true }));
  call("orphans", ["p", "q"], 10);
  call("idleUploads", ["p", "q"], 0, { expiresAt: 0, id: 0 }, 10);
  call("adoptOrphan", upload.handle, 1, 5);
  const next = call("beginWrite", beginOf(upload, { declareSize: 20 }));
  if (next.kind !== "ok") throw new Error(next.kind);
  call("releaseWrite", upload.handle, "p_one", next.upload.fence);
  const last = call(
    "beginWrite",
    beginOf(upload, { held: { fence: next.upload.fence, seq: next.segment.seq } }),
  );
  if (last.kind !== "ok") throw new Error(last.kind);
  call("commitWrite", commitOf(last, 15, { status: "verifying" }));
  call("claimVerifications", "r", ["p_one", "q"], 10);
  call("settle", upload.handle, upload.generation, { status: "mismatch", sha256: "f", ttlMs: dayMs });
  const again = call("startOver", upload.handle, newTicket(), dayMs);
  if (again === null) throw new Error("Not started over");
  const done = call("beginWrite", beginOf(again.upload));
  if (done.kind !== "ok") throw new Error(done.kind);
  call("commitWrite", commitOf(done, 20, { status: "complete", sha256: "f" }));
  call("findDownload", input.ticket.hash);
  const blob = newBlob();
  call("announceBlob", blob);
  call("replaceSegments", upload.handle, again.upload.generation, { blob, length: 20 });
  const listed = database.prepare("SELECT blob FROM garbage WHERE blob = ?").all(blob);
  expect(listed).toEqual([]); // or each sweep would step over all compacted files
  call("announceBlob", "c");
  call("addGarbage", ["d"]);
  call("unknownBlobs", ["b", "c", "e"]);
  call("garbage", 0, 10);
  call("garbageLeft");
  call("forgetGarbage", ["b", "c"]);
  call("expire", 0, 10);
  call("removeStaleTickets", 0, 10);
  call("registerProcess", "p", 1);
  call("heartbeat", "p");
  call("processes");
  call("removeProcess", "p");
  call("usage", "ada");
  call("removeUpload", upload.handle, null);
}

describe("queries of the SQLite state", () => {
  it("find their rows by a key or an index, never by a scan", () => {
    everyOperation();
    expect(plans.length).toBeGreaterThan(60);
    // `due` is the few expired records, found by index; `upload_verifying` holds only what is being verified; `process`
    // has a row for each process. The garbage is counted once in a sweep.
    const scans = plans.filter((plan) =>
      /^SCAN (?!due\b|process\b|garbage USING COVERING INDEX|CONSTANT ROW|upload USING INDEX upload_verifying)/.test(
        plan,
      ),
    );
    expect(scans).toEqual([]);
  });

  it("need no sorting but for the expired records and the processes", () => {
    everyOperation();
    const sorts = plans.filter(
      (plan) => plan.startsWith("USE TEMP B-TREE") && !/"due"|from "process"/.test(plan),
    );
    expect(sorts).toEqual([]);
  });
});
