/**
 * Who works on which task. A principal with a million waiting tasks must not keep another from its turn, nor may it cost
 * more to claim one of them, so principals are walked in the order of an index, one seek for each kind and turn.
 *
 * Rejected: one statement over all kinds (`kind in (…) order by principal`) sorts every ready task of those kinds.
 */
import type {
  ClaimedTask,
  ClaimQuery,
  HeldTask,
  Lease,
  Outlook,
  ReleaseWake,
} from "../../../tasks/state-store.ts";
import { first, type Op, type OpContext, oneOff, prepared, rows, run } from "../operation.ts";
import { heartbeat } from "../transfers/processes.ts";
import { answeredOf } from "./questions.ts";
import type { TaskTable } from "./tables.ts";
import { endTask, holds, recordOf, taskById } from "./task-row.ts";

const maxOwners = 1_000;
const maxHeld = 10_000;
/** Due tasks made ready, and tasks past their deadline ended, in one claim. */
const maxDue = 500;

const nextOwner = prepared((db, p: { after: string }) =>
  db
    .selectFrom("task")
    .select("lease_owner")
    .where("lease_owner", ">", p.after)
    .orderBy("lease_owner")
    .limit((eb) => eb.lit(1)),
);

const firstWake = prepared((db) =>
  db
    .selectFrom("task")
    .select("wake_at")
    .where("wake_at", "is not", null)
    .orderBy("wake_at")
    .limit((eb) => eb.lit(1)),
);

const firstDeadline = prepared((db) =>
  db
    .selectFrom("task")
    .select("deadline_at")
    .where("deadline_at", "is not", null)
    .where("lease_owner", "is", (eb) => eb.lit(null))
    .where("ended_at", "is", (eb) => eb.lit(null))
    .orderBy("deadline_at")
    .limit((eb) => eb.lit(1)),
);

function* foreignOwners(context: OpContext, self: string): Op<string[]> {
  const owners: string[] = [];
  let after = "";
  while (owners.length < maxOwners) {
    const next = yield* first(nextOwner(context, { after }));
    if (next?.lease_owner == null) break;
    after = next.lease_owner;
    if (after !== self) owners.push(after);
  }
  return owners;
}

export function* outlook(context: OpContext, owner: string, kinds: readonly string[]): Op<Outlook> {
  const { db, now } = context;
  const wake = (yield* first(firstWake(context, {})))?.wake_at ?? null;
  const deadline = (yield* first(firstDeadline(context, {})))?.deadline_at ?? null;
  const due = Math.min(wake ?? Number.POSITIVE_INFINITY, deadline ?? Number.POSITIVE_INFINITY);
  let ready = due <= now;
  if (!ready && kinds.length > 0) {
    const query = db
      .selectFrom("task")
      .select("task_id")
      .where("kind", "in", kinds)
      .where("ready_at", "is not", null)
      .limit(1);
    ready = (yield* first(oneOff(query))) !== null;
  }
  const nextDueAt = Number.isFinite(due) ? due : null;
  return { ready, nextDueAt, foreignOwners: yield* foreignOwners(context, owner), now };
}

const wakeDue = prepared((db, p: { now: number; limit: number }) =>
  db
    .updateTable("task")
    .set((eb) => ({ ready_at: p.now, wake_at: eb.lit(null) }))
    .where("task_id", "in", (eb) =>
      eb.selectFrom("task").select("task_id").where("wake_at", "<=", p.now).orderBy("wake_at").limit(p.limit),
    ),
);

const overdue = prepared((db, p: { now: number; limit: number }) =>
  db
    .selectFrom("task")
    .selectAll()
    .where("deadline_at", "<=", p.now)
    .where("lease_owner", "is", (eb) => eb.lit(null))
    .where("ended_at", "is", (eb) => eb.lit(null))
    .orderBy("deadline_at")
    .limit(p.limit),
);

const nextPrincipal = prepared((db, p: { kind: string; after: string }) =>
  db
    .selectFrom("task")
    .select("principal")
    .where("kind", "=", p.kind)
    .where("ready_at", "is not", null)
    .where("principal", ">", p.after)
    .orderBy("principal")
    .limit((eb) => eb.lit(1)),
);

const oldestReady = prepared((db, p: { kind: string; principal: string }) =>
  db
    .selectFrom("task")
    .selectAll()
    .where("kind", "=", p.kind)
    .where("principal", "=", p.principal)
    .where("ready_at", "is not", null)
    .orderBy("ready_at")
    .limit((eb) => eb.lit(1)),
);

const argsOf = prepared((db, p: { taskId: string }) =>
  db.selectFrom("task_payload").select("args").where("task_id", "=", p.taskId),
);

const takeLease = prepared((db, p: { taskId: string; owner: string; fence: number }) =>
  db
    .updateTable("task")
    .set((eb) => ({
      lease_owner: p.owner,
      fence: p.fence,
      called: eb.lit(0),
      ready_at: eb.lit(null),
      wake_at: eb.lit(null),
      ran_before: eb.lit(1),
    }))
    .where("task_id", "=", p.taskId),
);

function* principalAfter(context: OpContext, kinds: readonly string[], after: string): Op<string | null> {
  let next: string | null = null;
  for (const kind of kinds) {
    const found = (yield* first(nextPrincipal(context, { kind, after })))?.principal ?? null;
    if (found !== null && (next === null || found < next)) next = found;
  }
  return next;
}

function* oldestOf(context: OpContext, kinds: readonly string[], principal: string): Op<TaskTable | null> {
  let oldest: TaskTable | null = null;
  for (const kind of kinds) {
    const row: TaskTable | null = yield* first(oldestReady(context, { kind, principal }));
    if (row !== null && (oldest === null || (row.ready_at ?? 0) < (oldest.ready_at ?? 0))) oldest = row;
  }
  return oldest;
}

function* claimRow(context: OpContext, row: TaskTable, owner: string): Op<ClaimedTask> {
  const { task_id: taskId } = row;
  const fence = row.fence + 1;
  yield* run(takeLease(context, { taskId, owner, fence }));
  const payload = yield* first(argsOf(context, { taskId }));
  const task = yield* recordOf(context, { ...row, lease_owner: owner, fence }, false);
  return {
    task,
    args: payload?.args ?? "null",
    ranBefore: row.ran_before === 1,
    steps: row.steps,
    crashes: row.crashes,
  };
}

export function* claimTasks(
  context: OpContext,
  query: ClaimQuery,
  deadlineError: string,
): Op<{ claimed: ClaimedTask[]; lastPrincipal: string; now: number }> {
  const { now } = context;
  const { owner, kinds, limit, perPrincipal } = query;
  for (const row of yield* rows(overdue(context, { now, limit: maxDue }))) {
    yield* endTask(context, row, { status: "failed", result: null, error: deadlineError });
  }
  yield* run(wakeDue(context, { now, limit: maxDue }));

  const running = new Map(query.running.map(({ principal, tasks }) => [principal, tasks]));
  const claimed: ClaimedTask[] = [];
  let cursor = query.afterPrincipal;
  let lastPrincipal = cursor;
  // One round is one walk over all principals; the first begins in the middle, so it takes two to see everyone.
  for (let fruitless = 0; claimed.length < limit && fruitless < 2; ) {
    const principal = yield* principalAfter(context, kinds, cursor);
    if (principal === null) {
      cursor = "";
      fruitless += 1;
      continue;
    }
    cursor = principal;
    const tasks = running.get(principal) ?? 0;
    const row = tasks < perPrincipal ? yield* oldestOf(context, kinds, principal) : null;
    if (row === null) continue;
    claimed.push(yield* claimRow(context, row, owner));
    running.set(principal, tasks + 1);
    lastPrincipal = principal;
    fruitless = 0;
  }
  if (claimed.length > 0) yield* heartbeat(context, owner);
  return { claimed, lastPrincipal, now };
}

/** Ready again for whoever has its kind; what it waits for it finds open again. */
const freeLease = prepared(
  (
    db,
    p: {
      taskId: string;
      readyAt: number | null;
      wakeAt: number | null;
      ranBefore: number;
      crashes: number;
    },
  ) =>
    db
      .updateTable("task")
      .set((eb) => ({
        lease_owner: eb.lit(null),
        fence: eb("fence", "+", eb.lit(1)),
        called: eb.lit(0),
        ready_at: p.readyAt,
        wake_at: p.wakeAt,
        ran_before: p.ranBefore,
        crashes: p.crashes,
      }))
      .where("task_id", "=", p.taskId),
);

export function* takeBack(context: OpContext, owners: readonly string[], limit: number): Op<number> {
  if (owners.length === 0) return 0;
  const query = context.db.selectFrom("task").selectAll().where("lease_owner", "in", owners).limit(limit);
  const found = yield* rows(oneOff(query));
  for (const row of found) {
    if (row.cancel_requested === 1) {
      yield* endTask(context, row, { status: "cancelled", result: null, error: null });
    } else {
      const { task_id: taskId, crashes } = row;
      const free = { taskId, readyAt: context.now, wakeAt: null, ranBefore: 1, crashes: crashes + 1 };
      yield* run(freeLease(context, free));
    }
  }
  return found.length;
}

export function* releaseTask(context: OpContext, lease: Lease, wake: ReleaseWake): Op<boolean> {
  const { now } = context;
  const { taskId } = lease;
  const row = yield* first(taskById(context, { taskId }));
  if (!holds(row, lease)) return false;
  if (row.cancel_requested === 1) {
    yield* endTask(context, row, { status: "cancelled", result: null, error: null });
    return true;
  }
  const atOnce = typeof wake === "string" || (yield* answeredOf(context, taskId, wake.names)).length > 0;
  const inMs = typeof wake === "string" ? null : wake.inMs;
  yield* run(
    freeLease(context, {
      taskId,
      readyAt: atOnce ? now : null,
      wakeAt: atOnce || inMs === null ? null : now + inMs,
      ranBefore: wake === "untouched" ? 0 : 1,
      crashes: row.crashes,
    }),
  );
  return true;
}

const held = prepared((db, p: { owner: string; leastCalled: number }) =>
  db
    .selectFrom("task")
    .select(["task_id", "fence", "cancel_requested"])
    .where("lease_owner", "=", p.owner)
    .where("called", ">=", p.leastCalled)
    .limit((eb) => eb.lit(maxHeld)),
);

export function* heldTasks(context: OpContext, owner: string, onlyCalled: boolean): Op<HeldTask[]> {
  const found = yield* rows(held(context, { owner, leastCalled: onlyCalled ? 1 : 0 }));
  return found.map((row) => ({
    taskId: row.task_id,
    fence: row.fence,
    cancelRequested: row.cancel_requested === 1,
  }));
}
