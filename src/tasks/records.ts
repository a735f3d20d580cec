/** What a state store keeps of tasks. Times are ms since the epoch by the store's clock; JSON values are kept as their text. */
import type { TaskStatus } from "./engine.ts";

export interface QuestionRecord {
  readonly inputId: string;
  readonly prompt: string;
  readonly choices: readonly string[] | null;
  /** JSON text. */
  readonly schema: string | null;
  readonly askedAt: number;
}

export interface TaskRecord {
  readonly taskId: string;
  readonly principal: string;
  readonly kind: string;
  readonly status: TaskStatus;
  readonly progress: { readonly message: string; readonly fraction: number | null } | null;
  /** Open questions of a task that has not ended, oldest first. */
  readonly questions: readonly QuestionRecord[];
  /** JSON text of what the handler returned; null where that was nothing, before the end, and in lists. */
  readonly result: string | null;
  /** JSON text of the error body, once failed. */
  readonly error: string | null;
  readonly cancelRequested: boolean;
  /** Who runs it, or holds its handler waiting in memory; null where nobody does. */
  readonly leaseOwner: string | null;
  /** Rises with each claim and each release: whoever names an older one changes nothing. */
  readonly fence: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly endedAt: number | null;
  /** Set at the end. */
  readonly expiresAt: number | null;
  readonly deadlineAt: number | null;
  /** Rises with each change that a watcher may want to see. */
  readonly version: number;
}

/** What a step does; a name that comes back with another kind is a changed handler. */
export type StepKind = "step" | "input" | "sleep" | "file";

/** `entered`: recorded before it ran, no outcome yet. A sleep stays so; its time says when it is over. */
export type StepState = "entered" | "done" | "failed";

export interface StepRecord {
  readonly name: string;
  readonly kind: StepKind;
  readonly state: StepState;
  /** Times it was entered: 1 while it runs for the first time. */
  readonly entries: number;
  /** Entries that ended with an error (and not with a crash). */
  readonly failures: number;
  /** End of a sleep, or of the wait before the next attempt. */
  readonly dueAt: number | null;
  /** JSON text of the result (`done`) or of the error (`failed`); null: nothing, or see `leftOutLength`. */
  readonly result: string | null;
  /** Characters of the result where it was left out for its length (`stepResult` gives it), else null. */
  readonly leftOutLength: number | null;
}
