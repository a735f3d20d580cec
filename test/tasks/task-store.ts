/** A real store with handlers in it, and small ways to talk to its tasks. */
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll } from "vitest";
import { openStore, type Store, type StoreOptions } from "../../src/store/open-store.ts";
import type {
  JsonValue,
  StartTask,
  Task,
  TaskContext,
  TaskEngine,
  TaskKind,
} from "../../src/tasks/engine.ts";
import { openTestStore, type TestStoreOptions, testLimits } from "../support/engine.ts";

export const me = "local";

export type Handler = (context: TaskContext, args: JsonValue) => unknown;

/** A kind of this name; what the handler gives is taken as it is, so that a test can return what is not JSON. */
export function kindOf(kind: string, handler: Handler, restart?: "whole"): TaskKind {
  return {
    kind,
    ...(restart !== undefined && { restart }),
    handler: async (args, context) => (await handler(context, args)) as JsonValue,
  };
}

/** A store with one kind, `job`. */
export async function openJobs(
  handler: Handler,
  options: TestStoreOptions & { restart?: "whole" } = {},
): Promise<Store> {
  const store = await openTestStore(options);
  store.tasks.register(kindOf("job", handler, options.restart));
  return store;
}

export async function startJob(tasks: TaskEngine, args: JsonValue = null): Promise<string> {
  return (await tasks.start(me, { kind: "job", args })).task.taskId;
}

/** The task as it is when it has ended. */
export async function ended(tasks: TaskEngine, taskId: string, principal = me): Promise<Task> {
  for (let round = 0; round < 40; round += 1) {
    const task = await tasks.get(principal, taskId, { waitMs: 1_000 });
    if (task.endedAt !== null) return task;
  }
  throw new Error(`Task ${taskId} has not ended`);
}

/** The task once it waits for an answer. */
export async function asking(tasks: TaskEngine, taskId: string): Promise<Task> {
  for (let round = 0; round < 40; round += 1) {
    const task = await tasks.get(me, taskId, { waitMs: 1_000 });
    if (task.status === "input_required" || task.endedAt !== null) return task;
  }
  throw new Error(`Task ${taskId} does not ask`);
}

/** One store for all tests of a file that need nothing but a place to run a handler: a store takes longer to open than they do. */
export function sharedStore(tasks: StoreOptions["tasks"] = {}): () => Store {
  let store: Store | null = null;
  let dataDir = "";
  beforeAll(async () => {
    dataDir = await mkdtemp(path.join(os.tmpdir(), "longshore-tasks-"));
    const quota = { maxBytes: null, maxFiles: null };
    store = await openStore({
      dataDir,
      fsync: "never",
      limits: testLimits,
      tasks,
      quota,
      minFreeBytes: 0,
      log: () => {},
    });
  });
  afterAll(async () => {
    await store?.close();
    await rm(dataDir, { recursive: true, force: true });
  });
  return () => {
    if (store === null) throw new Error("The store is open within a test only");
    return store;
  };
}

let kinds = 0;

/** Starts a task with this handler, under a kind of its own. */
export async function begin(
  store: Store,
  handler: Handler,
  request: Partial<StartTask> = {},
): Promise<string> {
  kinds += 1;
  const kind = kindOf(`kind-${kinds}`, handler);
  store.tasks.register(kind);
  return (await store.tasks.start(me, { args: null, ...request, kind: kind.kind })).task.taskId;
}

/** The same, and waits for its end. */
export async function runJob(store: Store, handler: Handler, args: JsonValue = null): Promise<Task> {
  return ended(store.tasks, await begin(store, handler, { args }));
}

/** Something that a test lets happen. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: () => resolve() };
}

/** Rejects when the signal aborts, as `fetch` and its like do. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** Takes one place of this process for good. */
export async function keepBusy(store: Store): Promise<void> {
  const begun = gate();
  await begin(store, ({ signal }) => {
    begun.open();
    return untilAborted(signal);
  });
  await begun.opened;
}

/** Moves the times of all tasks, as if this long had passed. */
export function passTime(store: Store, ms: number): void {
  const rows = new DatabaseSync(path.join(store.dataDir, "state.sqlite"), { timeout: 5_000 });
  try {
    rows.exec(
      `UPDATE task SET created_at = created_at - ${ms}, updated_at = updated_at - ${ms}, ended_at = ended_at - ${ms},
       expires_at = expires_at - ${ms}, deadline_at = deadline_at - ${ms}, marked_at = marked_at - ${ms},
       wake_at = wake_at - ${ms}, version = version + 1`,
    );
    rows.exec(`UPDATE step SET due_at = due_at - ${ms}`);
  } finally {
    rows.close();
  }
}

/** How many steps of all tasks are recorded. */
export function recordedSteps(store: Store): number {
  const rows = new DatabaseSync(path.join(store.dataDir, "state.sqlite"), { timeout: 5_000 });
  try {
    return Number(rows.prepare("SELECT count(*) AS n FROM step").get()?.n);
  } finally {
    rows.close();
  }
}
