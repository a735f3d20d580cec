/**
 * One run of a handler, from the claim of its task to its end or the loss of its lease: the records it replays, what it does at the
 * moment, its place among the running ones, and how its end becomes the task's.
 *
 * Promises: nothing is recorded but under its lease; its slot is given back exactly once; `ended` resolves and never rejects.
 */
import { TransferError } from "../errors.ts";
import type { Log } from "../log.ts";
import { type StopReason, type TaskKind, TaskStopped } from "./engine.ts";
import { causeOf, failureOf, HandlerFault, interrupted, passedDeadline } from "./faults.ts";
import { jsonText, NotJson } from "./json-value.ts";
import { ProgressWriter } from "./progress-writer.ts";
import type { StepRecord, TaskRecord } from "./records.ts";
import type { Slots } from "./slots.ts";
import type { ClaimedTask, FinishTask, Lease, ReleaseWake, TaskState } from "./state-store.ts";
import { untilStored } from "./until-stored.ts";
import { Waits } from "./waits.ts";

const stepsAtOnce = 500;

export interface RunParts {
  readonly state: TaskState;
  readonly slots: Slots;
  readonly log: Log;
  /** Ms that a handler has to end after a cancel or its deadline; then it is fenced off. */
  readonly stopPatienceMs: number;
  /** Something that watchers want to see has changed. */
  readonly onChanged: (taskId: string) => void;
  /** It has begun to wait, or stopped waiting. */
  readonly onWaiting: (run: Run, waiting: boolean) => void;
  /** The process gives up what cannot be stored now. */
  readonly isClosed: () => boolean;
}

export class Run {
  readonly taskId: string;
  readonly principal: string;
  readonly lease: Lease;
  readonly kind: TaskKind;
  readonly args: string;
  readonly recorded = new Map<string, StepRecord>();
  /** Names that this run has come to. */
  readonly used = new Set<string>();
  readonly waits = new Waits<string>();
  readonly parts: RunParts;
  readonly claimed: ClaimedTask;
  readonly progress: ProgressWriter;
  readonly #clock: { readonly store: number; readonly here: number };
  readonly #abort = new AbortController();
  readonly #done = Promise.withResolvers<void>();
  /** Steps that run now. */
  readonly #active = new Set<Promise<unknown>>();
  #stopped: StopReason | null = null;
  #fault: HandlerFault | null = null;
  /** A call to the context was refused for a reason of the task's own, so that the handler may have taken another way. */
  #refused = false;
  #ended = false;
  #begun = false;
  #hasSlot = true;
  #returning: Promise<void> | null = null;
  #attending: Promise<void> | null = null;
  #attendAgain = false;
  #timers: NodeJS.Timeout[] = [];

  /** `now`: the store's clock at the claim. */
  constructor(claimed: ClaimedTask, now: number, kind: TaskKind, owner: string, parts: RunParts) {
    const { task } = claimed;
    this.taskId = task.taskId;
    this.principal = task.principal;
    this.lease = { taskId: task.taskId, owner, fence: task.fence };
    this.kind = kind;
    this.args = claimed.args;
    this.claimed = claimed;
    this.parts = parts;
    this.#clock = { store: now, here: performance.now() };
    this.progress = new ProgressWriter(parts.state, this.lease, task.progress, () =>
      parts.onChanged(task.taskId),
    );
  }

  /** The store's clock, as far as it is known here. */
  storeNow(): number {
    return this.#clock.store + performance.now() - this.#clock.here;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get stopped(): StopReason | null {
    return this.#stopped;
  }

  get record(): TaskRecord {
    return this.claimed.task;
  }

  /** Resolves when the run holds neither slot nor lease any more. */
  get ended(): Promise<void> {
    return this.#done.promise;
  }

  get isWaiting(): boolean {
    return !this.#hasSlot && this.#returning === null && !this.#ended;
  }

  /** Runs the handler to its end. Never rejects; stays pending where the handler waits for something that was abandoned. */
  async execute(handler: () => Promise<unknown>): Promise<void> {
    try {
      const { deadlineAt } = this.record;
      if (deadlineAt !== null) this.#after(deadlineAt - this.storeNow(), () => this.stop("deadline"));
      if (this.record.cancelRequested) this.stop("cancel");
      await this.#loadSteps();
      let outcome: Outcome;
      try {
        this.checkGoingOn();
        this.#begun = true;
        outcome = { returned: await handler() };
      } catch (error) {
        outcome = { threw: error };
      }
      await this.progress.flush();
      await this.#settle(outcome);
    } catch (error) {
      this.parts.log({ level: "error", event: "task.stuck", taskId: this.taskId, error: causeOf(error) });
      await this.#giveUp();
    } finally {
      this.#leave("ended");
    }
  }

  /** Ends a task that may not run. */
  async refuse(error: TransferError): Promise<void> {
    try {
      await this.#finish("failed", null, error);
    } finally {
      this.#leave("ended");
    }
  }

  /** Tells the handler to stop. The first reason stays, except that a lost lease overrides all. */
  stop(reason: StopReason): void {
    if (this.#ended || (this.#stopped !== null && reason !== "lost")) return;
    this.#stopped = reason;
    const error = new TaskStopped(reason);
    this.#abort.abort(error);
    if (reason === "cancel" || reason === "deadline") {
      this.waits.reject(error);
      this.#after(this.parts.stopPatienceMs, () => void this.#fenceOff());
    } else {
      this.waits.abandon();
      if (reason === "lost") this.#leave("lost");
    }
  }

  /** Gives the lease back while the handler only waits: it is run again when its wait is over. */
  async putAway(reason: "put_away" | "stop"): Promise<void> {
    const wake = { names: this.waits.questions(), inMs: this.waits.nextInMs() };
    this.stop(reason);
    this.#leave(reason);
    await this.progress.flush();
    await this.#release(wake);
  }

  /** Waits until the steps that run have been recorded, then gives the lease back for others to go on at once. */
  async release(patienceMs: number): Promise<void> {
    if (this.#ended) return;
    if (this.isWaiting && this.#stopped === null) return this.putAway("stop");
    // What waits now never goes on, and its handler does not end by itself.
    const neverEnds = this.waits.size > 0;
    this.stop("stop");
    const inTime = new Promise<void>((resolve) => this.#after(patienceMs, resolve));
    const recorded = neverEnds ? Promise.allSettled([...this.#active]) : inTime;
    await Promise.race([this.ended, inTime, recorded]);
    if (this.#ended) return;
    this.#leave("stop");
    await this.#release(this.#wakeNow());
  }

  /** An answer came, or a cancel. */
  call(cancelRequested: boolean): void {
    if (cancelRequested) this.stop("cancel");
    void this.attend();
  }

  /** Brings the answers given so far to those who wait for them. */
  attend(): Promise<void> {
    if (this.#attending !== null) {
      this.#attendAgain = true;
      return this.#attending;
    }
    this.#attending = this.#attendNow().finally(() => {
      this.#attending = null;
    });
    return this.#attending;
  }

  // --- for the context

  /** Throws where the handler is to stop or has ended. */
  checkGoingOn(): void {
    if (this.#fault !== null) throw this.#fault;
    if (this.#ended) throw new TaskStopped(this.#stopped ?? "ended");
    if (this.#stopped !== null) throw new TaskStopped(this.#stopped);
  }

  /** Ends the task `failed` with this, whatever the handler does from now on. */
  fault(message: string): HandlerFault {
    this.#fault ??= new HandlerFault(message);
    this.waits.reject(this.#fault);
    return this.#fault;
  }

  /** Something of the task's own went otherwise than well, and the handler is told so. */
  noteRefusal(): void {
    this.#refused = true;
  }

  /** A call that must be made again until the store has it, as long as this run goes on. */
  durably<T>(call: () => Promise<T>): Promise<T> {
    return untilStored(call, () => !this.#ended && this.#stopped !== "lost");
  }

  /** Runs a step: it needs a slot, and the run is not waiting meanwhile. */
  active<T>(step: () => Promise<T>): Promise<T> {
    const running = this.#occupy().then(step);
    this.#active.add(running);
    const over = (): void => {
      this.#active.delete(running);
      this.#maybeVacate();
    };
    running.then(over, over);
    return running;
  }

  /** Waits without a slot; with one again afterwards. */
  async wait(name: string, inMs: number): Promise<void> {
    await this.awaited(this.waits.begin(name, { inMs, value: "" }));
  }

  /** The same for a wait that has begun. */
  async awaited(waiting: Promise<string>): Promise<string> {
    this.#maybeVacate();
    const value = await waiting;
    await this.#occupy();
    // Where several are waited for, the handler may go on to wait for the others.
    setImmediate(() => this.#maybeVacate());
    return value;
  }

  // --- inside

  async #loadSteps(): Promise<void> {
    if (this.claimed.steps === 0) return;
    for (let after = ""; ; ) {
      const page = await this.durably(() => this.parts.state.recordedSteps(this.taskId, after, stepsAtOnce));
      for (const step of page) this.recorded.set(step.name, step);
      const last = page.at(-1);
      if (last === undefined || page.length < stepsAtOnce) return;
      after = last.name;
    }
  }

  async #attendNow(): Promise<void> {
    do {
      this.#attendAgain = false;
      const names = this.waits.questions();
      try {
        const answers = await this.durably(() => this.parts.state.takeAnswers(this.lease, names));
        for (const { name, answer } of answers) this.waits.settle(name, answer);
      } catch (error) {
        this.parts.log({
          level: "warn",
          event: "task.unattended",
          taskId: this.taskId,
          error: String(error),
        });
      }
    } while (this.#attendAgain);
  }

  async #occupy(): Promise<void> {
    if (this.#hasSlot || this.#ended) return;
    if (this.#returning === null) {
      this.parts.onWaiting(this, false);
      this.#returning = this.parts.slots.takeAgain(this.principal).then(() => {
        this.#returning = null;
        // It may have been stopped for good while it stood in line.
        if (this.#ended) this.parts.slots.give(this.principal);
        else this.#hasSlot = true;
      });
    }
    await this.#returning;
  }

  #maybeVacate(): void {
    if (!this.#hasSlot || this.#ended || this.#active.size > 0 || this.waits.size === 0) return;
    this.#hasSlot = false;
    this.parts.slots.give(this.principal);
    this.parts.onWaiting(this, true);
  }

  /** The handler has ended: what becomes of the task. */
  async #settle(outcome: Outcome): Promise<void> {
    const stopped = this.#stopped;
    if (this.#ended) return;
    switch (stopped) {
      case "cancel":
      case "deadline":
        await Promise.allSettled([...this.#active]);
        await this.#finishStopped(stopped);
        return;
      case "stop":
        await Promise.allSettled([...this.#active]);
        // A replay does exactly what is left. Where nothing is recorded there is none, and what was returned is all there will ever be.
        if (!("returned" in outcome) || this.used.size > 0 || this.kind.restart === "whole") {
          await this.#release(this.#wakeNow());
          return;
        }
        break;
      case null:
        break;
      default:
        return;
    }
    if (this.#fault === null && "threw" in outcome) return this.#finish("failed", null, outcome.threw);
    const fault = this.#fault ?? this.#unreached();
    if (fault !== null) return this.#finish("failed", null, fault);
    let result: string | null;
    try {
      result = jsonText((outcome as { returned: unknown }).returned, "What the handler returned");
    } catch (problem) {
      // What is no NotJson was thrown by a getter of the handler's own.
      return this.#finish(
        "failed",
        null,
        problem instanceof NotJson ? new HandlerFault(problem.message) : problem,
      );
    }
    await this.#finish("completed", result, null);
  }

  /** Its end could not be recorded as it was. Held by a living process and run by nobody, it would never have another one. */
  async #giveUp(): Promise<void> {
    if (this.#ended || this.#stopped === "stop") return;
    await this.#finish(
      "failed",
      null,
      new TransferError("internal_error", "The end of the task could not be recorded."),
    ).catch(() => {});
  }

  /** A step that an earlier run recorded, and this one did not come to: another version of the handler. */
  #unreached(): HandlerFault | null {
    if (this.#refused) return null;
    for (const name of this.recorded.keys()) {
      if (this.used.has(name)) continue;
      return new HandlerFault(
        `The handler has changed: its step '${name}' was recorded by an earlier run, and this one ended without it.`,
      );
    }
    return null;
  }

  async #finishStopped(reason: "cancel" | "deadline"): Promise<void> {
    if (reason === "cancel") await this.#finish("cancelled", null, null);
    else await this.#finish("failed", null, passedDeadline());
  }

  async #fenceOff(): Promise<void> {
    const reason = this.#stopped;
    if (this.#ended || (reason !== "cancel" && reason !== "deadline")) return;
    const { log, stopPatienceMs } = this.parts;
    log({
      level: "warn",
      event: "task.fenced_off",
      taskId: this.taskId,
      kind: this.kind.kind,
      reason,
      stopPatienceMs,
    });
    try {
      await this.#finishStopped(reason);
    } catch (error) {
      log({ level: "error", event: "task.stuck", taskId: this.taskId, error: String(error) });
    }
    this.#leave("lost");
  }

  async #finish(status: FinishTask["status"], result: string | null, error: unknown): Promise<void> {
    const body = status === "failed" ? JSON.stringify(failureOf(error)) : null;
    const finished = await this.durably(() =>
      this.parts.state.finishTask({ ...this.lease, status, result, error: body }),
    );
    if (finished === null) return;
    const { taskId, kind } = this;
    if (finished.task.status === "failed") {
      const cause = causeOf(error);
      this.parts.log({ level: "warn", event: "task.failed", taskId, kind: kind.kind, error: cause });
    } else {
      this.parts.log({
        level: "debug",
        event: "task.ended",
        taskId,
        kind: kind.kind,
        status: finished.task.status,
      });
    }
    this.parts.onChanged(taskId);
  }

  /** Nothing of this run counts any more, and its place is free. */
  #leave(reason: StopReason): void {
    if (this.#ended) return;
    const waited = this.isWaiting;
    this.#ended = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#stopped ??= reason;
    if (!this.#abort.signal.aborted && (this.#active.size > 0 || this.waits.size > 0)) {
      this.#abort.abort(new TaskStopped(reason));
    }
    this.waits.abandon();
    if (waited) this.parts.onWaiting(this, false);
    if (this.#hasSlot) {
      this.#hasSlot = false;
      this.parts.slots.give(this.principal);
    }
    this.#done.resolve();
  }

  #wakeNow(): "now" | "untouched" {
    return this.#begun || this.claimed.ranBefore ? "now" : "untouched";
  }

  /** Never rejects: where the store has gone for good, so has this process soon, and others take the task back. */
  async #release(wake: ReleaseWake): Promise<void> {
    const { state, isClosed, log } = this.parts;
    try {
      await untilStored(
        () => state.releaseTask(this.lease, wake),
        () => !isClosed(),
      );
    } catch (error) {
      log({ level: "warn", event: "task.not_released", taskId: this.taskId, error: String(error) });
    }
  }

  #after(ms: number, then: () => void): void {
    // A deadline may be further away than a timer of Node can reach (2^31 ms).
    const pause = Math.max(0, Math.min(ms, 2 ** 30));
    const go = (): void => (ms > pause ? this.#after(ms - pause, then) : then());
    if (!this.#ended) this.#timers.push(setTimeout(go, pause).unref());
  }
}

type Outcome = { readonly returned: unknown } | { readonly threw: unknown };

export function interruptedTask(): TransferError {
  return interrupted(
    "The process that ran this task ended in the middle of it, and nothing was recorded that it could go on from.",
  );
}
