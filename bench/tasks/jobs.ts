/** What the process with the task engine is told to do, and what it answers: JSON over HTTP. */

export type TaskJob =
  /** Callers that start tasks which nobody runs, for so long. */
  | { readonly do: "start"; readonly callers: number; readonly ms: number }
  /** Callers that start a task and wait for its end, again and again. */
  | { readonly do: "run"; readonly callers: number; readonly ms: number }
  /** Tasks that record one step after the other, all at once. */
  | { readonly do: "steps"; readonly tasks: number; readonly ms: number }
  /** Processes killed while they run a task; the time until another one runs it. */
  | { readonly do: "take-over"; readonly kills: number };

export interface JobResult {
  readonly seconds: number;
  /** Tasks, steps or kills. */
  readonly amount: number;
}
