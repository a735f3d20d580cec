/** The processes that work on the store. Whether one is dead is the operating system's to say, not this table's. */
import type { ProcessRecord } from "../../../transfer/records.ts";
import { type Op, type OpContext, prepared, rows, run } from "../operation.ts";
import { toProcess } from "../schema.ts";

const upsertProcess = prepared((db, p: { id: string; pid: number; now: number }) =>
  db
    .insertInto("process")
    .values({ id: p.id, pid: p.pid, started_at: p.now, seen_at: p.now })
    .onConflict((conflict) =>
      conflict
        .column("id")
        .doUpdateSet((eb) => ({ pid: eb.ref("excluded.pid"), seen_at: eb.ref("excluded.seen_at") })),
    ),
);

const touchProcess = prepared((db, p: { id: string; now: number }) =>
  db.updateTable("process").set({ seen_at: p.now }).where("id", "=", p.id),
);

const allProcesses = prepared((db) =>
  db.selectFrom("process").selectAll().orderBy("started_at").orderBy("id"),
);

const deleteProcess = prepared((db, p: { id: string }) => db.deleteFrom("process").where("id", "=", p.id));

const endLeases = prepared((db, p: { owner: string }) =>
  db
    .updateTable("upload")
    .set((eb) => ({ lease_active: eb.lit(0), lease_request: eb.lit(null), bytes_per_second: eb.lit(null) }))
    .where("lease_owner", "=", p.owner)
    .where("lease_active", "=", (eb) => eb.lit(1)),
);

/** Nobody will ever name this process as dead again, so its verifications become nobody's, for anyone to claim. */
const leaveVerifications = prepared((db, p: { owner: string }) =>
  db
    .updateTable("upload")
    .set((eb) => ({ lease_owner: eb.lit(null) }))
    .where("lease_owner", "=", p.owner)
    .where("status", "=", "verifying"),
);

export function* registerProcess(context: OpContext, id: string, pid: number): Op<void> {
  yield* run(upsertProcess(context, { id, pid, now: context.now }));
}

export function* heartbeat(context: OpContext, id: string): Op<void> {
  yield* run(touchProcess(context, { id, now: context.now }));
}

export function* processes(context: OpContext): Op<{ processes: ProcessRecord[]; now: number }> {
  const found = yield* rows(allProcesses(context, {}));
  return { processes: found.map(toProcess), now: context.now };
}

export function* removeProcess(context: OpContext, id: string): Op<void> {
  yield* run(endLeases(context, { owner: id }));
  yield* run(leaveVerifications(context, { owner: id }));
  yield* run(deleteProcess(context, { id }));
}
