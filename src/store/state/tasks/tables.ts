/** The tables of tasks, as every database has them, and how their rows become records. JSON is kept as text. */
import type { TaskStatus } from "../../../tasks/engine.ts";
import type { QuestionRecord, StepKind, StepRecord, StepState, TaskRecord } from "../../../tasks/records.ts";

export interface TaskTable {
  task_id: string;
  principal: string;
  kind: string;
  status: TaskStatus;
  progress_message: string | null;
  progress_fraction: number | null;
  error: string | null;
  cancel_requested: number;
  lease_owner: string | null;
  fence: number;
  /** Answered or cancelled since its holder last attended to it. */
  called: number;
  /** Set while any process may claim it. */
  ready_at: number | null;
  /** When a parked task becomes ready by itself. */
  wake_at: number | null;
  ran_before: number;
  steps: number;
  open_questions: number;
  crashes: number;
  version: number;
  created_at: number;
  updated_at: number;
  ended_at: number | null;
  expires_at: number | null;
  deadline_at: number | null;
  ttl_ms: number;
  /** First look of expiry, as of uploads. */
  marked_at: number | null;
}

export interface TaskPayloadTable {
  task_id: string;
  args: string;
  result: string | null;
}

export interface TaskKeyTable {
  principal: string;
  kind: string;
  key: string;
  arguments_hash: string;
  task_id: string;
}

export interface StepTable {
  task_id: string;
  name: string;
  kind: StepKind;
  state: StepState;
  entries: number;
  failures: number;
  due_at: number | null;
  result: string | null;
}

export interface QuestionTable {
  task_id: string;
  input_id: string;
  /** Order of asking within its task. */
  seq: number;
  step_name: string;
  prompt: string;
  choices: string | null;
  schema: string | null;
  asked_at: number;
  is_open: number;
}

export interface TaskTables {
  task: TaskTable;
  task_payload: TaskPayloadTable;
  task_key: TaskKeyTable;
  step: StepTable;
  question: QuestionTable;
}

export const toTask = (
  row: TaskTable,
  questions: readonly QuestionRecord[],
  result: string | null,
): TaskRecord => ({
  taskId: row.task_id,
  principal: row.principal,
  kind: row.kind,
  status: row.status,
  progress:
    row.progress_message === null ? null : { message: row.progress_message, fraction: row.progress_fraction },
  questions,
  result,
  error: row.error,
  cancelRequested: row.cancel_requested === 1,
  leaseOwner: row.lease_owner,
  fence: row.fence,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  endedAt: row.ended_at,
  expiresAt: row.expires_at,
  deadlineAt: row.deadline_at,
  version: row.version,
});

export const toQuestion = (row: QuestionTable): QuestionRecord => ({
  inputId: row.input_id,
  prompt: row.prompt,
  // Written by this store as an array of strings.
  choices: row.choices === null ? null : (JSON.parse(row.choices) as string[]),
  schema: row.schema,
  askedAt: row.asked_at,
});

export const toStep = (row: StepTable): StepRecord => ({
  name: row.name,
  kind: row.kind,
  state: row.state,
  entries: row.entries,
  failures: row.failures,
  dueAt: row.due_at,
  result: row.result,
  leftOutLength: null,
});
