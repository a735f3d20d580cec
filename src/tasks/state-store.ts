/**
 * What the task engine needs of a state store, and what the store promises. The contract suite in
 * `test/contract/task-state.ts` holds every backend to it.
 *
 * Promises:
 * - Each method is one transaction: it happens whole or not at all, and when its promise resolves it is durable (on disk
 *   with `fsync: "always"`).
 * - Methods of any number of processes on one store behave as if they ran one after the other.
 * - Time is the store's own clock (`now` in the outcomes is that clock); no method takes the caller's time.
 * - A method that names a lease (`Lease`) changes nothing and answers `fenced` where the task is another owner's by now, of another
 *   fence, ended or gone.
 * - A task that is not ended is in exactly one of these: leased (somebody runs it or holds it waiting), ready (any process
 *   with its kind may claim it), parked (nobody holds it; an answer or its time makes it ready).
 * - Faults reject as those of the transfers' state do.
 * - Every method but `sweep` costs the same however many records there are.
 */
import type { TaskProgress, TaskStatus } from "./engine.ts";
import type { StepKind, StepRecord, TaskRecord } from "./records.ts";

export interface Lease {
  readonly taskId: string;
  readonly owner: string;
  readonly fence: number;
}

export interface NewTask {
  readonly taskId: string;
  readonly principal: string;
  readonly kind: string;
  /** JSON text. */
  readonly args: string;
  /** `argumentsHash`: hex sha256 of the canonical arguments. A key belongs to principal and kind, and ends with its task. */
  readonly idempotency: { readonly key: string; readonly argumentsHash: string } | null;
  readonly deadlineMs: number | null;
  /** Kept this long after its end. */
  readonly ttlMs: number;
  /** Claims it in the same transaction (fence 1) where given: a start costs one commit less. */
  readonly owner: string | null;
}

export type CreateTaskOutcome =
  | { readonly kind: "created"; readonly task: TaskRecord; readonly now: number }
  | { readonly kind: "existing"; readonly task: TaskRecord; readonly now: number }
  | { readonly kind: "conflict" }
  /** The id exists already. */
  | { readonly kind: "taken" };

export interface TaskListQuery {
  readonly principal: string;
  readonly status: TaskStatus | null;
  readonly limit: number;
  /** Exclusive: rows after this one in the order (createdAt, taskId). */
  readonly after: { readonly createdAt: number; readonly taskId: string } | null;
}

export interface AnswerTask {
  readonly taskId: string;
  readonly inputId: string;
  /** JSON text of an `InputAnswer`. */
  readonly answer: string;
}

export type AnswerOutcome =
  /** Recorded, or recorded before with the same words. */
  | { readonly kind: "ok"; readonly task: TaskRecord; readonly now: number }
  /** No such question is open: answered otherwise, never asked, or its task has ended. */
  | { readonly kind: "not_waiting"; readonly task: TaskRecord; readonly now: number }
  | { readonly kind: "unknown" };

export interface Outlook {
  /** A task of these kinds may be claimed now, or a time has come that `claim` attends to. */
  readonly ready: boolean;
  /** When the next parked task or deadline of an unleased one is due. */
  readonly nextDueAt: number | null;
  /** Other owners of leases, at most 1,000. */
  readonly foreignOwners: readonly string[];
  readonly now: number;
}

export interface ClaimQuery {
  readonly owner: string;
  readonly kinds: readonly string[];
  readonly limit: number;
  /** Tasks of one principal that this owner may run at once. */
  readonly perPrincipal: number;
  /** What it runs already. */
  readonly running: readonly { readonly principal: string; readonly tasks: number }[];
  /** Principals take turns: the one after this comes first. */
  readonly afterPrincipal: string;
}

export interface ClaimedTask {
  readonly task: TaskRecord;
  /** JSON text. */
  readonly args: string;
  /** Its handler ran before, here or elsewhere, and left it without an end. */
  readonly ranBefore: boolean;
  /** Recorded steps. */
  readonly steps: number;
  /** Owners that died while they held it, since a step was last recorded. */
  readonly crashes: number;
}

export interface HeldTask {
  readonly taskId: string;
  readonly fence: number;
  readonly cancelRequested: boolean;
}

export interface EnterStep extends Lease {
  readonly name: string;
  readonly kind: StepKind;
  /** Of a sleep: its length, counted from its first entry. */
  readonly dueInMs: number | null;
  /** Refuses a new step above this. */
  readonly maxSteps: number;
}

export type EnterOutcome =
  /** Recorded: `entries` has risen, or the step is new. A step that has its outcome is returned as it is. */
  | { readonly kind: "ok"; readonly step: StepRecord; readonly now: number }
  /** The name is recorded as something else. */
  | { readonly kind: "other_kind"; readonly recorded: StepKind }
  | { readonly kind: "too_many" }
  | { readonly kind: "fenced" };

export type StepEnd =
  | { readonly state: "done"; readonly result: string | null }
  | { readonly state: "failed"; readonly error: string }
  /** Another attempt follows in this time. */
  | { readonly state: "again"; readonly inMs: number };

export interface EndStep extends Lease {
  readonly name: string;
  readonly end: StepEnd;
}

export interface AskQuestion extends Lease {
  /** Name of the step. */
  readonly name: string;
  readonly inputId: string;
  readonly prompt: string;
  readonly choices: readonly string[] | null;
  readonly schema: string | null;
  /** Shown from then on; null leaves what is shown. */
  readonly progress: TaskProgress | null;
  readonly maxSteps: number;
}

export type ReleaseWake =
  | "now"
  | "untouched"
  | { readonly names: readonly string[]; readonly inMs: number | null };

export type FinishStatus = "completed" | "failed" | "cancelled";

export interface FinishTask extends Lease {
  readonly status: FinishStatus;
  readonly result: string | null;
  readonly error: string | null;
}

export interface TaskState {
  // --- for callers
  createTask(input: NewTask): Promise<CreateTaskOutcome>;
  /** With result, error and open questions. */
  findTask(taskId: string): Promise<{ task: TaskRecord; now: number } | null>;
  /** Tasks of the principal that are not past their time, in the order (createdAt, taskId), without results. */
  listTasks(query: TaskListQuery): Promise<{ tasks: TaskRecord[]; now: number }>;
  /** One read: versions of those of these that exist; at most 500. */
  taskVersions(taskIds: readonly string[]): Promise<{ taskId: string; version: number }[]>;
  /** Settles an open question and the step that asked it. A parked task becomes ready; the holder of a leased one is told by `heldTasks`. */
  answerTask(input: AnswerTask): Promise<AnswerOutcome>;
  /**
   * Accepts a cancel. One that nobody holds, or whose holder is in `goneOwners`, is cancelled at once; else its holder is told
   * (`heldTasks`). An ended task is returned unchanged; null where it is unknown.
   */
  cancelTask(
    taskId: string,
    goneOwners: readonly string[],
  ): Promise<{ task: TaskRecord; now: number } | null>;

  // --- taking work
  /** Changes nothing: whether there is anything to do for a process that handles these kinds. */
  outlook(owner: string, kinds: readonly string[]): Promise<Outlook>;
  /**
   * Makes due tasks ready, ends unleased ones past their deadline with this error, then takes leases on ready ones: principals
   * in turn, of each the oldest first. The same transaction is a sign of life of the owner.
   */
  claimTasks(
    query: ClaimQuery,
    deadlineError: string,
  ): Promise<{ claimed: ClaimedTask[]; lastPrincipal: string; now: number }>;
  /** Ends the leases of owners that are gone: their tasks are ready again (cancelled where that was asked), fences raised. At most `limit`. */
  takeBack(owners: readonly string[], limit: number): Promise<number>;
  /** One read: what this owner holds; `onlyCalled`: only what was answered or cancelled since it was last attended to. At most 10,000. */
  heldTasks(owner: string, onlyCalled: boolean): Promise<HeldTask[]>;
  /** The answers given so far to the questions of these steps (JSON texts); marks the task as attended to. */
  takeAnswers(lease: Lease, names: readonly string[]): Promise<{ name: string; answer: string }[]>;

  // --- under a lease
  /** One read: recorded steps in the order of their names, after `afterName`. Results above 1,024 characters are left out. */
  recordedSteps(taskId: string, afterName: string, limit: number): Promise<StepRecord[]>;
  /** One read. */
  stepResult(taskId: string, name: string): Promise<string | null>;
  /** Records that a step is about to run, before it does. */
  enterStep(input: EnterStep): Promise<EnterOutcome>;
  /** Records how it ended. */
  endStep(input: EndStep): Promise<{ kind: "ok"; now: number } | { kind: "fenced" }>;
  /** Enters an `input` step and opens its question in one transaction. One that is there already is returned as it is. */
  askQuestion(input: AskQuestion): Promise<EnterOutcome>;
  setProgress(lease: Lease, message: string, fraction: number | null): Promise<boolean>;
  /**
   * Gives the lease back. `now`: ready at once. `untouched`: the same, and its handler counts as never begun. Else parked: ready when a
   * question is answered (at once where one of these steps is answered already), and after `inMs` where given.
   */
  releaseTask(lease: Lease, wake: ReleaseWake): Promise<boolean>;
  /** Ends a task. One that was to be cancelled ends cancelled, whatever is given. Null where fenced. */
  finishTask(input: FinishTask): Promise<{ task: TaskRecord; now: number } | null>;

  // --- care
  /**
   * First look and second look, as expiry of uploads: marks ended tasks past their time, unmarks those that no longer are,
   * removes those marked at least `graceMs` ago and still past it. At most `limit` of each.
   */
  sweepTasks(graceMs: number, limit: number): Promise<{ marked: number; unmarked: number; removed: number }>;
}
