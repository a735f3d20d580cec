/** What a store and its worker say to each other. Both sides say as much as they can in one message. */
import type { ErrorCode } from "../../errors.ts";

export interface WorkerRequest {
  readonly id: number;
  /** Group and name of the operation, as `transfers.createUpload`. */
  readonly operation: string;
  readonly args: readonly unknown[];
}

/** An error on its way between threads. */
export interface Failure {
  readonly code: Extract<ErrorCode, "storage_unavailable" | "storage_full" | "internal_error">;
  readonly message: string;
  readonly retryable: boolean;
  /** What was thrown, with its stack: for the log. */
  readonly cause: string | null;
}

export type WorkerReply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly failure: Failure };

export type ToWorker =
  | { readonly kind: "requests"; readonly requests: readonly WorkerRequest[] }
  /** Whether other processes' changes are to be looked for. */
  | { readonly kind: "watch"; readonly on: boolean }
  | { readonly kind: "close" };

export type FromWorker =
  /** `tornLogBytes`: what the end of the log held beyond its last whole commit; it was left out. */
  | { readonly kind: "ready"; readonly tornLogBytes: number }
  | { readonly kind: "failed"; readonly failure: Failure }
  /** `changed`: records that somebody may be waiting for were written. */
  | { readonly kind: "replies"; readonly replies: readonly WorkerReply[]; readonly changed: boolean }
  | { readonly kind: "changed" };

export interface WorkerSettings {
  /** Absolute. */
  readonly dataDir: string;
  readonly fsync: "always" | "never";
  readonly processId: string;
}
