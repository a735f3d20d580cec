/**
 * Which tasks this process runs, and when it looks for more: after its own starts, answers and ends, after other processes' changes, and
 * when the next parked task or deadline is due. Only while other processes hold tasks is there a slow look at whether they still live.
 *
 * A holder is gone when the operating system says that its process is dead, or when it has given no sign of life for a while; a stopped
 * process finds its leases lost when it comes back.
 */
import type { Log } from "../log.ts";
import type { TransferEngine } from "../transfer/engine.ts";
import type { ChangeFeed, Liveness, TransferState } from "../transfer/state-store.ts";
import { contextOf } from "./context.ts";
import type { JsonValue, TaskKind } from "./engine.ts";
import { failureOf, interrupted, passedDeadline } from "./faults.ts";
import { parsedJson } from "./json-value.ts";
import { interruptedTask, Run, type RunParts } from "./run.ts";
import { Slots } from "./slots.ts";
import type { ClaimedTask, TaskState } from "./state-store.ts";

const signOfLifeMs = 1_000;
/** A holder silent for longer is stopped or hangs. With a look each second, its tasks go on elsewhere within 5 s. */
const silentMs = 3_000;
const longestSilentMs = 180_000;
const foreignLookMs = 1_000;
/** However busy the store, other processes' changes are followed up this often at most. */
const minLookMs = 200;
const retryMs = 1_000;
const takeBackAtOnce = 200;
/** A task whose process died this many times with nothing recorded in between is not given another one to kill. */
const maxCrashes = 100;
const longestTimerMs = 2 ** 30;

export interface TaskLimits {
  /** Handlers of this process that run at once; waiting ones not counted. */
  readonly concurrency: number;
  /** The same for one principal. */
  readonly perPrincipal: number;
  /** Handlers that wait in memory; above it they are put away and replayed when their wait is over. */
  readonly maxWaiting: number;
  /** An ended task is kept this long. */
  readonly taskTtlMs: number;
  /** Ms that a handler has to end after a cancel or its deadline; then it is fenced off. */
  readonly cancelPatienceMs: number;
  /** Ms that running steps have to be recorded when the process stops. */
  readonly closePatienceMs: number;
}

interface Parts {
  readonly state: TaskState;
  readonly signs: Pick<TransferState, "heartbeat" | "processes">;
  readonly changes: ChangeFeed;
  readonly liveness: Liveness;
  readonly transfers: TransferEngine;
  readonly limits: TaskLimits;
  readonly log: Log;
  readonly onChanged: (taskId: string) => void;
}

export class Dispatcher {
  readonly #parts: Parts;
  readonly #kinds = new Map<string, TaskKind>();
  readonly #runs = new Map<string, Run>();
  readonly #waiting = new Set<Run>();
  /** Last signs of life of other processes, and since when there has been none newer by this process's monotonic clock. */
  readonly #lastSigns = new Map<string, { readonly seenAt: number; readonly since: number }>();
  /** Owners judged silent before: the last sign of those that have given none since, and how long they may be silent the next time. */
  readonly #givenUp = new Map<string, { readonly seenAt: number | null; readonly patienceMs: number }>();
  readonly #slots: Slots;
  readonly #runParts: RunParts;
  #unsubscribe: (() => void) | null = null;
  #looking: Promise<void> | null = null;
  #lookAgain = false;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #soon: NodeJS.Timeout | null = null;
  /** For the next due time, the next look at other processes, or the next try. */
  #later: NodeJS.Timeout | null = null;
  #beat: NodeJS.Timeout | null = null;
  /** More is ready than could be claimed last time. */
  #backlog = true;
  #lastPrincipal = "";
  #closed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    const { limits, state, log, onChanged } = parts;
    this.#slots = new Slots(limits.concurrency, limits.perPrincipal, () => this.look());
    this.#runParts = {
      state,
      slots: this.#slots,
      log,
      stopPatienceMs: limits.cancelPatienceMs,
      onChanged,
      onWaiting: (run, waiting) => this.#onWaiting(run, waiting),
      isClosed: () => this.#closed,
    };
  }

  register(kind: TaskKind): void {
    const known = this.#kinds.get(kind.kind);
    if (known === kind) return;
    if (known !== undefined)
      throw new TypeError(`There is another handler for tasks of kind '${kind.kind}' already.`);
    this.#kinds.set(kind.kind, kind);
    if (this.#closed) return;
    this.#unsubscribe ??= this.#parts.changes.subscribe(() => this.#lookSoon());
    this.look();
  }

  /** What this process has registered by this name. */
  kindOf(kind: string): TaskKind | undefined {
    return this.#kinds.get(kind);
  }

  /** The owner that a new task of this kind may be born with: this process, where it can run it at once. Else null. */
  tryReserve(kind: string, principal: string): string | null {
    if (this.#closed || this.#backlog || !this.#kinds.has(kind)) return null;
    return this.#slots.tryTake(principal) ? this.#parts.liveness.processId : null;
  }

  /** The place that was reserved is not needed. */
  unreserve(principal: string): void {
    this.#slots.give(principal);
  }

  /** Runs a task that this process holds, in a place that was reserved for it. */
  begin(claimed: ClaimedTask, now: number): void {
    const { task } = claimed;
    const kind = this.#kinds.get(task.kind);
    if (kind === undefined) throw new Error(`No handler for tasks of kind '${task.kind}'`);
    const run = new Run(claimed, now, kind, this.#parts.liveness.processId, this.#runParts);
    // Claimed again before its loss was noticed here.
    this.#runs.get(run.taskId)?.stop("lost");
    this.#runs.set(run.taskId, run);
    void run.ended.then(() => this.#onEnded(run));
    this.#beat ??= setInterval(() => void this.#signOfLife(), signOfLifeMs).unref();
    if (this.#closed) void run.release(0);
    else if (claimed.crashes > maxCrashes) {
      void run.refuse(
        interrupted(
          `The process that ran this task died ${claimed.crashes} times in a row in the middle of it.`,
        ),
      );
    } else if (claimed.ranBefore && claimed.steps === 0 && kind.restart !== "whole") {
      void run.refuse(interruptedTask());
    } else {
      const args = parsedJson(run.args) as JsonValue;
      const context = contextOf(run, this.#parts.transfers);
      void run.execute(async () => kind.handler(args, context));
    }
  }

  /** The task was answered or cancelled by this process, whoever runs it. */
  called(taskId: string, cancelRequested: boolean): void {
    const run = this.#runs.get(taskId);
    if (run !== undefined) run.call(cancelRequested);
    else this.look();
  }

  /** Whether a holder of leases is certainly dead, or silent for longer than any is. */
  async isGone(owner: string): Promise<boolean> {
    return (await this.#goneOf([owner])).length > 0;
  }

  /** Looks for work at once; once more afterwards where it is called meanwhile. */
  look(): void {
    if (this.#closed || this.#kinds.size === 0) return;
    if (this.#looking !== null) {
      this.#lookAgain = true;
      return;
    }
    this.#looking = this.#lookNow().finally(() => {
      this.#looking = null;
      if (this.#lookAgain) {
        this.#lookAgain = false;
        this.look();
      }
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#unsubscribe?.();
    for (const timer of [this.#soon, this.#later]) if (timer !== null) clearTimeout(timer);
    await this.#looking;
    await Promise.all([...this.#runs.values()].map((run) => run.release(this.#parts.limits.closePatienceMs)));
    if (this.#beat !== null) clearInterval(this.#beat);
  }

  #onEnded(run: Run): void {
    this.#waiting.delete(run);
    if (this.#runs.get(run.taskId) === run) this.#runs.delete(run.taskId);
    if (this.#runs.size === 0 && this.#beat !== null) {
      clearInterval(this.#beat);
      this.#beat = null;
    }
  }

  #onWaiting(run: Run, waiting: boolean): void {
    if (!waiting) {
      this.#waiting.delete(run);
      return;
    }
    this.#waiting.add(run);
    if (this.#waiting.size <= this.#parts.limits.maxWaiting) return;
    // Whoever has waited longest is the least likely to be answered in a moment.
    for (const one of this.#waiting) {
      if (one.stopped !== null) continue;
      this.#waiting.delete(one);
      void one.putAway("put_away").then(() => this.look());
      return;
    }
  }

  /** After a change by anybody: what concerns the runs here, and whether there is more to do. */
  #lookSoon(): void {
    if (this.#soon !== null || this.#closed) return;
    const wait = Math.max(0, this.#lookedAt + minLookMs - performance.now());
    this.#soon = setTimeout(() => {
      this.#soon = null;
      this.#lookedAt = performance.now();
      this.look();
      if (this.#runs.size > 0) void this.#attend(true);
    }, wait).unref();
  }

  async #lookNow(): Promise<void> {
    const { state, liveness, log } = this.#parts;
    const kinds = [...this.#kinds.keys()];
    if (this.#later !== null) clearTimeout(this.#later);
    this.#later = null;
    try {
      // With more to do than could be taken, a free place is filled without looking first.
      const claimed = this.#backlog && this.#slots.free > 0;
      if (claimed) await this.#claim(kinds);
      const outlook = await state.outlook(liveness.processId, kinds);
      const gone = await this.#goneOf(outlook.foreignOwners);
      if (gone.length > 0) await this.#takeBack(gone);
      if ((outlook.ready && !claimed) || gone.length > 0) await this.#claim(kinds);
      const dueInMs = outlook.nextDueAt === null ? null : outlook.nextDueAt - outlook.now;
      const pauses = [
        ...(dueInMs === null ? [] : [dueInMs > 0 ? dueInMs : foreignLookMs]),
        ...(outlook.foreignOwners.length > 0 ? [foreignLookMs] : []),
      ];
      if (pauses.length > 0) this.#lookIn(Math.min(...pauses));
    } catch (error) {
      log({ level: "warn", event: "tasks.look_failed", error: String(error) });
      this.#lookIn(retryMs);
    }
  }

  async #claim(kinds: readonly string[]): Promise<void> {
    const { state, liveness, limits } = this.#parts;
    const reserved = this.#slots.reserve();
    let claimed: ClaimedTask[] = [];
    try {
      const outcome = await state.claimTasks(
        {
          owner: liveness.processId,
          kinds,
          limit: reserved,
          perPrincipal: limits.perPrincipal,
          running: this.#slots.running(),
          afterPrincipal: this.#lastPrincipal,
        },
        JSON.stringify(failureOf(passedDeadline())),
      );
      claimed = outcome.claimed;
      this.#lastPrincipal = outcome.lastPrincipal;
      this.#backlog = claimed.length === reserved;
      this.#slots.assign(
        reserved,
        claimed.map(({ task }) => task.principal),
      );
      for (const one of claimed) this.begin(one, outcome.now);
    } catch (error) {
      if (claimed.length === 0) this.#slots.assign(reserved, []);
      throw error;
    }
  }

  /**
   * Silence is measured here, as the time in which no newer sign was seen: a clock that jumps, or a machine that slept, makes nobody silent.
   */
  async #goneOf(owners: readonly string[]): Promise<string[]> {
    if (owners.length === 0) {
      this.#lastSigns.clear();
      return [];
    }
    const { signs, liveness } = this.#parts;
    const { processes } = await signs.processes();
    const seen = new Map(processes.map(({ id, seenAt }) => [id, seenAt]));
    for (const known of [this.#lastSigns, this.#givenUp])
      for (const id of known.keys()) if (!seen.has(id)) known.delete(id);
    const gone: string[] = [];
    for (const owner of owners) {
      if (owner === liveness.processId) continue;
      const seenAt = seen.get(owner);
      if (seenAt === undefined || this.#isSilent(owner, seenAt) || (await liveness.isDead(owner)))
        gone.push(owner);
    }
    return gone;
  }

  /**
   * An owner that was given up and then gave a sign was only busy (a step that blocks its thread). It gets twice the time from then on:
   * else two processes that are blocked in turn would take such a task from each other for ever.
   */
  #isSilent(owner: string, seenAt: number): boolean {
    const givenUp = this.#givenUp.get(owner);
    if (givenUp !== undefined && givenUp.seenAt !== null && givenUp.seenAt !== seenAt) {
      this.#givenUp.set(owner, {
        seenAt: null,
        patienceMs: Math.min(2 * givenUp.patienceMs, longestSilentMs),
      });
    }
    const last = this.#lastSigns.get(owner);
    if (last?.seenAt !== seenAt) {
      this.#lastSigns.set(owner, { seenAt, since: performance.now() });
      return false;
    }
    const patienceMs = this.#givenUp.get(owner)?.patienceMs ?? silentMs;
    const isSilent = performance.now() - last.since > patienceMs;
    if (isSilent) this.#givenUp.set(owner, { seenAt, patienceMs });
    return isSilent;
  }

  async #takeBack(owners: readonly string[]): Promise<void> {
    let tasks = 0;
    for (let some = takeBackAtOnce; some === takeBackAtOnce; tasks += some) {
      some = await this.#parts.state.takeBack(owners, takeBackAtOnce);
    }
    if (tasks > 0)
      this.#parts.log({ level: "info", event: "tasks.taken_back", owners: owners.length, tasks });
  }

  #lookIn(ms: number): void {
    if (this.#closed) return;
    if (this.#later !== null) clearTimeout(this.#later);
    this.#later = setTimeout(
      () => {
        this.#later = null;
        this.look();
      },
      Math.min(ms, longestTimerMs),
    ).unref();
  }

  async #signOfLife(): Promise<void> {
    const { signs, liveness, log } = this.#parts;
    try {
      await signs.heartbeat(liveness.processId);
      await this.#attend(false);
    } catch (error) {
      log({ level: "warn", event: "tasks.no_sign_of_life", error: String(error) });
    }
  }

  /** Tells runs what has come for them; of all of them also which are not this process's any more. */
  async #attend(onlyCalled: boolean): Promise<void> {
    const { state, liveness, log } = this.#parts;
    const before = [...this.#runs.values()];
    try {
      const held = new Map(
        (await state.heldTasks(liveness.processId, onlyCalled)).map((one) => [one.taskId, one]),
      );
      for (const run of before) {
        const found = held.get(run.taskId);
        if (found?.fence === run.lease.fence) {
          if (onlyCalled || found.cancelRequested) run.call(found.cancelRequested);
        } else if (!onlyCalled) run.stop("lost");
      }
    } catch (error) {
      log({ level: "warn", event: "tasks.look_failed", error: String(error) });
    }
  }
}
