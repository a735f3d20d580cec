/** The task engine: who may do what to which task, put together from the parts beside this file. */
import { createHash } from "node:crypto";
import { TransferError } from "../errors.ts";
import type { Log } from "../log.ts";
import type { TransferEngine } from "../transfer/engine.ts";
import type { ChangeFeed, Liveness, TransferState } from "../transfer/state-store.ts";
import { checkedAnswer } from "./answer-check.ts";
import { Dispatcher, type TaskLimits } from "./dispatcher.ts";
import type {
  InputAnswer,
  JsonValue,
  StartTask,
  Task,
  TaskEngine,
  TaskKind,
  TaskPage,
  TaskStatus,
} from "./engine.ts";
import { isTaskId, newTaskId } from "./identifiers.ts";
import { canonicalJson, jsonText, NotJson } from "./json-value.ts";
import type { TaskRecord } from "./records.ts";
import type { TaskState } from "./state-store.ts";
import { formatCursor, isPast, notWaiting, parseCursor, toTask, unknownTask } from "./view.ts";
import { TaskWatchers } from "./watchers.ts";

export type { TaskLimits } from "./dispatcher.ts";

export const defaultTaskLimits: TaskLimits = {
  concurrency: 16,
  perPrincipal: 12,
  maxWaiting: 1_000,
  taskTtlMs: 86_400_000,
  cancelPatienceMs: 30_000,
  closePatienceMs: 3_000,
};

/** Between the first look of expiry and the second: a jump of the clock loses nothing. */
const graceMs = 3_600_000;
const batch = 200;
const maxRounds = 500;
const stepsAtOnce = 500;
const maxKeyLength = 255;
const longestDeadlineMs = 10 * 365 * 86_400_000;

export interface TaskParts {
  readonly state: TaskState;
  /** Signs of life of processes, which the transfers' state keeps. */
  readonly signs: Pick<TransferState, "heartbeat" | "processes">;
  readonly changes: ChangeFeed;
  readonly liveness: Liveness;
  readonly transfers: TransferEngine;
  readonly limits: TaskLimits;
  readonly log: Log;
}

/** This process must be registered in the store. Nothing is claimed before a kind is registered. */
export function createTasks(parts: TaskParts): TaskEngine {
  return new Tasks(parts);
}

class Tasks implements TaskEngine {
  readonly #parts: TaskParts;
  readonly #watchers: TaskWatchers;
  readonly #dispatcher: Dispatcher;
  /** Gets that wait, to be answered when the engine closes. */
  readonly #waiting = new Set<() => void>();
  #sweeping: Promise<{ removedTasks: number }> | null = null;
  #closed = false;

  constructor(parts: TaskParts) {
    this.#parts = parts;
    const { state, changes, log } = parts;
    this.#watchers = new TaskWatchers(state, changes, (error) =>
      log({ level: "warn", event: "tasks.look_failed", error: String(error) }),
    );
    this.#dispatcher = new Dispatcher({ ...parts, onChanged: (taskId) => this.#watchers.wake(taskId) });
  }

  register(kind: TaskKind): void {
    this.#dispatcher.register(kind);
  }

  async start(principal: string, request: StartTask): Promise<{ task: Task; created: boolean }> {
    const { kind, idempotencyKey = null } = request;
    const input = this.#newTask(request);
    const owner = this.#dispatcher.tryReserve(kind, principal);
    let begun = false;
    try {
      const outcome = await this.#parts.state.createTask({ ...input, principal, kind, owner });
      switch (outcome.kind) {
        case "created":
          if (owner !== null) {
            begun = true;
            const claimed = { task: outcome.task, args: input.args, ranBefore: false, steps: 0, crashes: 0 };
            this.#dispatcher.begin(claimed, outcome.now);
          } else this.#dispatcher.look();
          return { task: toTask(outcome.task), created: true };
        case "existing":
          return { task: toTask(outcome.task), created: false };
        case "conflict":
          throw new TransferError(
            "idempotency_conflict",
            "This idempotencyKey was used with other arguments before.",
          );
        case "taken":
          throw new Error(`A new task's id exists already (key: ${idempotencyKey !== null})`);
        default:
          return outcome satisfies never;
      }
    } finally {
      if (owner !== null && !begun) this.#dispatcher.unreserve(principal);
    }
  }

  async get(
    principal: string,
    taskId: string,
    options: { waitMs?: number; signal?: AbortSignal; untilProgress?: boolean } = {},
  ): Promise<Task> {
    const { waitMs = 0, signal, untilProgress = false } = options;
    const first = await this.#own(principal, taskId);
    if (waitMs <= 0 || first.endedAt !== null || this.#closed || signal?.aborted === true)
      return toTask(first);
    return new Promise((resolve, reject) => {
      let last = first;
      const end = (settle: () => void): void => {
        clearTimeout(timer);
        unwatch();
        this.#waiting.delete(onTime);
        signal?.removeEventListener("abort", onTime);
        settle();
      };
      const onTime = (): void => end(() => resolve(toTask(last)));
      const timer = setTimeout(onTime, Math.min(waitMs, 2 ** 31 - 1));
      const unwatch = this.#watchers.watch(taskId, first.version, (found) => {
        if (found === null || isPast(found.task, found.now)) return end(() => reject(unknownTask()));
        last = found.task;
        if (hasChanged(first, last, untilProgress)) onTime();
      });
      this.#waiting.add(onTime);
      signal?.addEventListener("abort", onTime, { once: true });
    });
  }

  async respond(
    principal: string,
    taskId: string,
    inputId: string | null,
    answer: InputAnswer,
  ): Promise<Task> {
    const record = await this.#own(principal, taskId);
    const question =
      inputId === null ? record.questions[0] : record.questions.find((one) => one.inputId === inputId);
    // One that is not open may be answered already with the same words, which only the store can tell.
    if (question === undefined && inputId === null) throw notWaiting(record);
    const text =
      question === undefined
        ? canonicalJson(
            answer.action === "accept"
              ? { action: "accept", value: answer.value }
              : { action: answer.action },
          )
        : checkedAnswer(question, answer);
    const id = question?.inputId ?? inputId ?? "";
    const outcome = await this.#parts.state.answerTask({ taskId, inputId: id, answer: text });
    if (outcome.kind === "unknown") throw unknownTask();
    if (outcome.kind === "not_waiting") throw notWaiting(outcome.task);
    if (question !== undefined) this.#changed(taskId, false);
    return toTask(outcome.task);
  }

  async cancel(principal: string, taskId: string): Promise<Task> {
    const record = await this.#own(principal, taskId);
    if (record.endedAt !== null) return toTask(record);
    const { leaseOwner } = record;
    const gone = leaseOwner !== null && (await this.#dispatcher.isGone(leaseOwner)) ? [leaseOwner] : [];
    const cancelled = await this.#parts.state.cancelTask(taskId, gone);
    if (cancelled === null) throw unknownTask();
    this.#changed(taskId, cancelled.task.endedAt === null);
    if (cancelled.task.status === "cancelled") void this.#discard(cancelled.task);
    return toTask(cancelled.task);
  }

  async list(
    principal: string,
    query: { status: TaskStatus | null; limit: number; cursor: string | null },
  ): Promise<TaskPage> {
    const limit = Math.max(1, Math.min(1000, query.limit));
    const { tasks } = await this.#parts.state.listTasks({
      principal,
      status: query.status,
      limit: limit + 1,
      after: query.cursor === null ? null : parseCursor(query.cursor),
    });
    const page = tasks.slice(0, limit);
    const last = page.at(-1);
    return {
      tasks: page.map(toTask),
      nextCursor: tasks.length > limit && last !== undefined ? formatCursor(last) : null,
    };
  }

  watch(principal: string, taskId: string, onChange: (task: Task) => void): () => void {
    let unwatch: (() => void) | null = null;
    let ended = false;
    const begin = async (): Promise<void> => {
      const first = await this.#own(principal, taskId);
      if (ended || this.#closed) return;
      unwatch = this.#watchers.watch(taskId, first.version, (found) => {
        if (found !== null && !ended) onChange(toTask(found.task));
      });
    };
    // Of a task that does not exist for this principal nothing is ever told.
    begin().catch(() => {});
    return () => {
      ended = true;
      unwatch?.();
    };
  }

  sweep(): Promise<{ removedTasks: number }> {
    this.#sweeping ??= this.#sweepNow().finally(() => {
      this.#sweeping = null;
    });
    return this.#sweeping;
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const answer of [...this.#waiting]) answer();
    this.#watchers.close();
    await this.#dispatcher.close();
    await this.#sweeping?.catch(() => {});
  }

  async #sweepNow(): Promise<{ removedTasks: number }> {
    let removedTasks = 0;
    for (let round = 0; round < maxRounds && !this.#closed; round += 1) {
      const { marked, unmarked, removed } = await this.#parts.state.sweepTasks(graceMs, batch);
      removedTasks += removed;
      if (marked < batch && unmarked < batch && removed < batch) break;
    }
    if (removedTasks > 0) this.#parts.log({ level: "info", event: "tasks.swept", removedTasks });
    return { removedTasks };
  }

  /** What a task has made that ended with nobody to clean up after it. Never rejects: what cannot be removed stays its owner's. */
  async #discard({ taskId, kind, principal }: TaskRecord): Promise<void> {
    const discard = this.#dispatcher.kindOf(kind)?.discard;
    if (discard === undefined) return;
    const { state, log } = this.#parts;
    try {
      const results: JsonValue[] = [];
      for (let after: string | null = ""; after !== null; ) {
        const page = await state.recordedSteps(taskId, after, stepsAtOnce);
        for (const { name, state: step, result, leftOutLength } of page) {
          const text = leftOutLength === null ? result : await state.stepResult(taskId, name);
          if (step === "done" && text !== null) results.push(JSON.parse(text) as JsonValue);
        }
        after = page.length < stepsAtOnce ? null : (page.at(-1)?.name ?? null);
      }
      await discard(principal, results);
    } catch (error) {
      log({ level: "warn", event: "task.not_discarded", taskId, error: String(error) });
    }
  }

  #changed(taskId: string, cancelRequested: boolean): void {
    this.#watchers.wake(taskId);
    this.#dispatcher.called(taskId, cancelRequested);
  }

  #newTask({ kind, args, idempotencyKey = null, deadlineMs = null, ttlMs = null }: StartTask) {
    if (idempotencyKey !== null && (idempotencyKey === "" || idempotencyKey.length > maxKeyLength)) {
      throw new TransferError("invalid_param", `An idempotencyKey has 1 to ${maxKeyLength} characters.`, {
        param: "idempotencyKey",
      });
    }
    if (deadlineMs !== null && !(deadlineMs > 0 && deadlineMs <= longestDeadlineMs)) {
      throw new TransferError("invalid_param", "A deadline is a positive number of ms.", {
        param: "deadlineMs",
      });
    }
    const { taskTtlMs } = this.#parts.limits;
    return {
      taskId: newTaskId(),
      args: argsText(this.#dispatcher.kindOf(kind)?.withSettings?.(args) ?? args),
      idempotency:
        idempotencyKey === null ? null : { key: idempotencyKey, argumentsHash: argumentsHash(args) },
      deadlineMs: deadlineMs === null ? null : Math.ceil(deadlineMs),
      ttlMs: ttlMs !== null && ttlMs >= 0 ? Math.min(Math.ceil(ttlMs), taskTtlMs) : taskTtlMs,
    };
  }

  /** Unknown, another principal's and past its time are one and the same. */
  async #own(principal: string, taskId: string): Promise<TaskRecord> {
    const found = isTaskId(taskId) ? await this.#parts.state.findTask(taskId) : null;
    if (found === null || found.task.principal !== principal || isPast(found.task, found.now))
      throw unknownTask();
    return found.task;
  }
}

function hasChanged(before: TaskRecord, after: TaskRecord, alsoProgress: boolean): boolean {
  if (before.status !== after.status) return true;
  const asked = (record: TaskRecord): string => record.questions.map(({ inputId }) => inputId).join(" ");
  if (asked(before) !== asked(after)) return true;
  return (
    alsoProgress &&
    (before.progress?.message !== after.progress?.message ||
      before.progress?.fraction !== after.progress?.fraction)
  );
}

function argsText(args: JsonValue): string {
  try {
    return jsonText(args, "The arguments of the task") ?? "null";
  } catch (error) {
    if (!(error instanceof NotJson)) throw error;
    throw new TransferError("invalid_param", error.message, { param: "args" });
  }
}

function argumentsHash(args: JsonValue): string {
  return createHash("sha256").update(canonicalJson(args)).digest("hex");
}
