/** What a handler throws, as what its task says of its failure, and back again for a replay. */
import { type ErrorBody, type ErrorCode, errorBody, errorCatalogue, TransferError } from "../errors.ts";

const maxMessageLength = 4_000;

/** A fault of the handler against the rules of tasks. It ends the task `failed`, even where the handler catches it. */
export class HandlerFault extends TransferError {
  constructor(message: string) {
    super("task_failed", message, {
      recoveryHint:
        "This is a fault of the task's program: tell its author. Starting the task again will not help.",
    });
  }
}

/** Never throws, whatever was thrown: a task whose failure cannot be told would never end. */
function wordsOf(thrown: unknown): {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
} {
  try {
    if (!(thrown instanceof Error)) return { name: "Error", message: String(thrown), stack: String(thrown) };
    const { name, message, stack } = thrown;
    return { name: String(name), message: String(message), stack: String(stack ?? message) };
  } catch {
    const message = "What the task's program threw cannot be read.";
    return { name: "Error", message, stack: message };
  }
}

/** For the log: where it comes from. */
export function causeOf(thrown: unknown): string {
  return wordsOf(thrown).stack.slice(0, 2 * maxMessageLength);
}

/** A handler's own error is its author's message to the caller; one of the catalogue keeps its code. */
export function failureOf(thrown: unknown): ErrorBody {
  if (thrown instanceof TransferError) return errorBody(thrown);
  const message = wordsOf(thrown).message.slice(0, maxMessageLength);
  return errorBody(
    new TransferError("task_failed", message === "" ? "The task failed without a message." : message),
  );
}

export function passedDeadline(): TransferError {
  return new TransferError("task_interrupted", "The task did not end before its deadline.", {
    recoveryHint: "Start the task again with less to do or more time.",
  });
}

export function interrupted(message: string): TransferError {
  return new TransferError("task_interrupted", message);
}

interface RecordedError {
  readonly name: string;
  readonly message: string;
  readonly body: ErrorBody | null;
}

/** The error of a step that has failed for good, as its record keeps it. */
export function errorText(thrown: unknown): string {
  const { name, message } = wordsOf(thrown);
  const body = thrown instanceof TransferError ? errorBody(thrown) : null;
  return JSON.stringify({ name, message: message.slice(0, maxMessageLength), body } satisfies RecordedError);
}

/** The error again, on a replay: of the same message and, where it has one, code. Its class is lost. */
export function revivedError(text: string): Error {
  // Written by `errorText`.
  const { name, message, body } = JSON.parse(text) as RecordedError;
  if (body !== null && isErrorCode(body.code)) {
    const { code, partial, param, repair, retryable, recoveryHint, retryAfterSeconds } = body;
    return new TransferError(code, message, {
      retryable,
      recoveryHint,
      ...(param !== undefined && { param }),
      ...(partial !== undefined && { cursor: partial.cursor }),
      ...(repair !== undefined && { repair }),
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    });
  }
  const error = new Error(message);
  error.name = name;
  return error;
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorCatalogue, code);
}
