/**
 * The task engine as its faces see it: durable units of long work that outlive calls, connections and processes. All rules about
 * states, steps, questions, leases, retries, deadlines and expiry are behind this interface, once; the tools of the facade, the
 * extension of 2026-07-28 and the core tasks of 2025-11-25 only render it.
 *
 * Promises:
 * - A task is durable before its id is returned. What is acknowledged (a step's result, an answer, a cancel) is durable.
 * - A handler is replayed from its start after a crash: steps whose result is recorded return it and do not run; the one that was
 *   running runs once more with the same key; questions keep their id, answers are kept.
 * - A worker that lost its lease changes nothing any more, and its `signal` aborts.
 * - What belongs to another principal does not exist: `unknown_task`, the same as for an unknown or an expired one.
 */
import type { Readable } from "node:stream";
import type { ErrorBody } from "../errors.ts";
import type { Transfer } from "../transfer/engine.ts";

/**
 * What a task takes, gives and records.
 *
 * @example
 * const value: JsonValue = { pages: ["a", "b"], done: true };
 */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/**
 * `working` and `input_required` until the end; the other three are the end.
 *
 * @example
 * const status: TaskStatus = "input_required";
 */
export type TaskStatus = "working" | "input_required" | "completed" | "failed" | "cancelled";

/**
 * What the handler last said of how far it is.
 *
 * @example
 * const progress: TaskProgress = { message: "Crawled 3 pages", fraction: 0.3 };
 */
export interface TaskProgress {
  readonly message: string;
  /** 0 to 1; null where unknown. Never falls. */
  readonly fraction: number | null;
}

/**
 * A question that is open.
 *
 * @example
 * const [question]: readonly InputRequest[] = task.inputRequests;
 */
export interface InputRequest {
  readonly id: string;
  readonly prompt: string;
  readonly choices: readonly string[] | null;
  /** JSON Schema of the answer (an object with flat properties, as MCP elicitation has it), where the handler gave one. */
  readonly schema: JsonValue | null;
  readonly askedAt: Date;
}

/**
 * A task as its owner sees it.
 *
 * @example
 * const task: Task = await store.tasks.get("local", taskId, { waitMs: 20_000 });
 */
export interface Task {
  readonly taskId: string;
  readonly principal: string;
  /** Name of the kind: what handler runs it. The name of the tool that started it. */
  readonly kind: string;
  readonly status: TaskStatus;
  readonly progress: TaskProgress | null;
  /** Open questions, oldest first. */
  readonly inputRequests: readonly InputRequest[];
  /** What the handler returned, once completed; `undefined` where that was nothing, and in lists. */
  readonly result: JsonValue | undefined;
  /** Once failed. */
  readonly error: ErrorBody | null;
  /** A cancel was accepted and the work has not stopped yet. */
  readonly cancelRequested: boolean;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly endedAt: Date | null;
  /** After its end; null while it runs. */
  readonly expiresAt: Date | null;
  readonly deadlineAt: Date | null;
}

/**
 * A task to be started, for a program of the store itself.
 *
 * @example
 * const request: StartTask = { kind: "crawl-site", args: { url }, idempotencyKey: url };
 */
export interface StartTask {
  readonly kind: string;
  /** Already validated; JSON. Kept with the task. */
  readonly args: JsonValue;
  readonly idempotencyKey?: string | null;
  /** Milliseconds from now after which the task fails. */
  readonly deadlineMs?: number | null;
  /** Keeps the ended task this long instead of the default (bounded by it). */
  readonly ttlMs?: number | null;
}

/**
 * How a question was settled.
 *
 * @example
 * await store.tasks.respond("local", taskId, null, { action: "accept", value: "yes" } satisfies InputAnswer);
 */
export type InputAnswer =
  | { readonly action: "accept"; readonly value: JsonValue }
  | { readonly action: "decline" }
  | { readonly action: "cancel" };

/**
 * How often a step is tried.
 *
 * @example
 * const patient: StepOptions = { attempts: 5, backoffMs: 2_000 };
 */
export interface StepOptions {
  /** Attempts in all, with exponential backoff between them; 1 (the default) fails at the first error. The wait is durable. */
  readonly attempts?: number;
  /** First wait in ms (default 1,000); doubles each time up to a minute. */
  readonly backoffMs?: number;
}

/**
 * What a step's function is given.
 *
 * @example
 * await ctx.step("charge", ({ key }: StepContext) => charge(order, { idempotencyKey: key }));
 */
export interface StepContext {
  /** Stays the same when the step must run again: makes an effect outside idempotent. */
  readonly key: string;
  readonly signal: AbortSignal;
  /** Times it was begun, this one included: 1 for the first try. Tries that a crash cut off count here, and not against `attempts`. */
  readonly attempt: number;
}

/**
 * A question that a task puts to its caller.
 *
 * @example
 * const question: NeedInput = { prompt: "Which one?", choices: ["first", "second"] };
 */
export interface NeedInput {
  readonly prompt: string;
  readonly choices?: readonly string[];
  /** JSON Schema (flat object) for a structured answer. */
  readonly schema?: JsonValue;
}

/**
 * Thrown by `needInput` where the question was declined or its dialogue cancelled.
 *
 * @example
 * try {
 *   await ctx.needInput({ prompt: "Go on?" });
 * } catch (error) {
 *   if (error instanceof InputRefused) return { stopped: error.action };
 *   throw error;
 * }
 */
export class InputRefused extends Error {
  override readonly name = "InputRefused";
  readonly action: "decline" | "cancel";
  constructor(action: "decline" | "cancel") {
    super(action === "decline" ? "The question was declined." : "The question was dismissed.");
    this.action = action;
  }
}

/**
 * Why a handler is to stop; `signal.reason` of its context, and what calls to its context reject with from then on.
 *
 * @example
 * if (ctx.signal.reason instanceof TaskStopped && ctx.signal.reason.reason === ("cancel" satisfies StopReason)) await cleanUp();
 */
export type StopReason =
  /** A cancel was accepted: clean up and end. The task is `cancelled` once the handler has ended, whatever it returns. */
  | "cancel"
  /** The task's deadline has passed: it ends `failed`. */
  | "deadline"
  /** Another process has taken the task over. Nothing that this one does counts any more. */
  | "lost"
  /** This process ends. The task goes on elsewhere or at the next start: throw, do not return half a result. */
  | "stop"
  /** The task waits and its place in memory was needed. It runs again, by replay, when its wait is over. */
  | "put_away"
  /** The handler has ended while this still ran. */
  | "ended";

/**
 * Why the context of a handler does no more; the reason of its `signal`.
 *
 * @example
 * ctx.signal.addEventListener("abort", () => {
 *   if (ctx.signal.reason instanceof TaskStopped) log(ctx.signal.reason.reason);
 * });
 */
export class TaskStopped extends Error {
  override readonly name = "TaskStopped";
  readonly reason: StopReason;
  constructor(reason: StopReason) {
    super(stopMessages[reason]);
    this.reason = reason;
  }
}

const stopMessages: Readonly<Record<StopReason, string>> = {
  cancel: "The task is being cancelled.",
  deadline: "The task has passed its deadline.",
  lost: "The task has been taken over by another process.",
  stop: "The process is stopping; the task goes on later.",
  put_away: "The task is waiting and was put away; it goes on later.",
  ended: "The task has ended.",
};

/**
 * Files of the principal that the task belongs to.
 *
 * @example
 * const files: TaskFiles = ctx.files;
 */
export interface TaskFiles {
  /** A finished file of the task's principal. */
  open(handle: string): Promise<OpenedFile>;
  /**
   * Stores a file, as a durable step named after the file: a crash in the middle leaves no half file and no second one.
   * `options.name` sets another step name where two files have one name.
   */
  write(
    filename: string,
    content: string | Uint8Array | Readable | (() => Readable),
    options?: { readonly name?: string; readonly contentType?: string },
  ): Promise<WrittenFile>;
}

/**
 * A finished file being read.
 *
 * @example
 * const file: OpenedFile = await ctx.files.open(handle);
 * for await (const piece of file.stream(0, 1024)) hash.update(piece);
 */
export interface OpenedFile {
  readonly transfer: Transfer;
  /** Bytes from `start` to `end` (exclusive); all without arguments. */
  stream(start?: number, end?: number): Readable;
  /** Path on this machine where the file is one blob (waits for the rewriting of a file in many segments); null where the store has none. */
  path(): Promise<string | null>;
}

/**
 * JSON, so that it can be a step's result.
 *
 * @example
 * const report: WrittenFile = await ctx.files.write("report.md", text);
 */
export interface WrittenFile {
  readonly [key: string]: JsonValue;
  readonly handle: string;
  readonly filename: string;
  readonly size: number;
  readonly sha256: string;
}

/** What a handler is given. */
export interface TaskContext {
  readonly taskId: string;
  readonly principal: string;
  /**
   * Aborts on cancel, deadline, loss of the lease and stop of the process; its reason is a `TaskStopped` that says which. From then on
   * the context's methods reject with it, except that a wait broken off by `lost`, `stop` or `put_away` never settles: no line of the
   * handler after it runs here.
   */
  readonly signal: AbortSignal;
  /**
   * Runs `fn` once: its result (JSON of up to 1 MiB) is recorded and returned on every replay; so is its last error, which is thrown again.
   * Names are unique within a task, of up to 512 characters; a task has at most 50,000 steps. Steps may run side by side.
   *
   * Steps are found by name, so their order may change between versions of a handler. What ends the task `failed` is a name used twice
   * in one run, a name recorded as another kind of step, and a recorded step that a handler has not come to when it returns (unless one of
   * its steps had failed or a question was refused: such a run may rightly have taken another way).
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: a function without a return gives void, and is a good step
  step<T extends JsonValue | undefined | void>(
    name: string,
    fn: (step: StepContext) => Promise<T> | T,
    options?: StepOptions,
  ): Promise<T>;
  /** Coalesced: only the newest is sure to be seen. */
  progress(message: string, fraction?: number): Promise<void>;
  /**
   * Asks, durably: the process may die while it waits. Resolves with the answer (a string, or an object where a schema was given). Throws `InputRefused`.
   * Known by its prompt, the second with the same words by its number too; set `name` where the words may differ on a replay.
   */
  needInput(question: NeedInput, options?: { readonly name?: string }): Promise<JsonValue>;
  readonly files: TaskFiles;
  /** Durable: a crash does not start it again. Known by its length and number; set `name` where two sleeps of one task could be confused. */
  sleep(ms: number, options?: { readonly name?: string }): Promise<void>;
}

export interface TaskKind {
  readonly kind: string;
  /** `whole`: a handler with nothing recorded may run again from its start after a crash; otherwise it ends with `task_interrupted`. */
  readonly restart?: "whole";
  /**
   * Runs again from its start on a replay, so what it does outside of steps it does again. It must not hold the thread for seconds: a
   * process that gives no sign of life for 3 s loses its tasks to others.
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: a handler without a return gives void
  readonly handler: (args: JsonValue, context: TaskContext) => Promise<JsonValue | undefined | void>;
  /**
   * Adds this process's settings to the arguments that a new task keeps, for whichever process runs it: it is to go by those of where it was
   * asked for. They count for nothing in the comparison by `idempotencyKey`.
   */
  readonly withSettings?: (args: JsonValue) => JsonValue;
  /** Takes back what the steps of a task have made that was cancelled while nobody ran it: `results` are theirs. Its handler is not called. */
  readonly discard?: (principal: string, results: readonly JsonValue[]) => Promise<void>;
}

/**
 * One page of a list of tasks.
 *
 * @example
 * const { tasks, nextCursor }: TaskPage = await store.tasks.list("local", { status: null, limit: 20, cursor: null });
 */
export interface TaskPage {
  readonly tasks: readonly Task[];
  readonly nextCursor: string | null;
}

/**
 * The store's tasks, for programs that start or follow them without a tool.
 *
 * @example
 * const engine: TaskEngine = store.tasks;
 * const { task } = await engine.start("local", { kind: "crawl-site", args: { url } });
 */
export interface TaskEngine {
  /** Makes this process take tasks of this kind. A second registration of a name with another handler is an error; the same object is none. */
  register(kind: TaskKind): void;

  /** Durable when it resolves. Same key and arguments: the same task (`created: false`); other arguments: `idempotency_conflict`. */
  start(principal: string, request: StartTask): Promise<{ task: Task; created: boolean }>;
  /** Waits up to `waitMs` for a change of status, a new question, or (with `onProgress: true`) progress. */
  get(
    principal: string,
    taskId: string,
    options?: { waitMs?: number; signal?: AbortSignal; untilProgress?: boolean },
  ): Promise<Task>;
  /** Answers a question (the oldest open one where `inputId` is null). `task_not_waiting` where none is open, or that one is answered already (the same answer again is no error). */
  respond(principal: string, taskId: string, inputId: string | null, answer: InputAnswer): Promise<Task>;
  /** Acknowledged at once; an ended task is returned unchanged. */
  cancel(principal: string, taskId: string): Promise<Task>;
  list(
    principal: string,
    query: { status: TaskStatus | null; limit: number; cursor: string | null },
  ): Promise<TaskPage>;

  /** Called back after any change of this task seen by this process (own at once, others' within half a second). */
  watch(principal: string, taskId: string, onChange: (task: Task) => void): () => void;

  /** Removes ended tasks past their time. */
  sweep(): Promise<{ removedTasks: number }>;
  /** Stops claiming, aborts handlers (reason: stop), waits a moment for steps to record, gives leases back so that others take over at once. */
  close(): Promise<void>;
}
