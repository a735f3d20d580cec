/** Answers that tell of a new upload: whatever became of its first bytes, its URL must not be lost. */
import type { TransferError } from "../errors.ts";
import { CreatedButFailed } from "../transfer/created-but-failed.ts";
import type { Created, Transfer } from "../transfer/engine.ts";
import type { Door } from "./door.ts";
import type { Answer, Exchange } from "./exchange.ts";
import { problemAnswer } from "./render.ts";
import { expiryHeaders, transferHeaders } from "./transfer-headers.ts";

export function createdHeaders({ transfer, ticket }: Created, door: Door): Record<string, string> {
  return {
    Location: door.links.upload(ticket),
    ...transferHeaders(transfer),
    ...expiryHeaders(transfer),
  };
}

/** The error as an answer, with the URL to go on at and the fields of the protocol. */
export function failedAnswer(
  error: TransferError,
  { transfer, ticket }: Created,
  { exchange, door, headers = {} }: { exchange: Exchange; door: Door; headers?: Record<string, string> },
): Answer {
  const answer = problemAnswer(error, exchange.requestId);
  return {
    ...answer,
    headers: {
      ...answer.headers,
      ...headers,
      Location: door.links.upload(ticket),
      // Its status may have changed since; the handle has not.
      "Longshore-Handle": transfer.handle,
    },
  };
}

/** The answer that `create` gives, or that of what failed once the upload was there. */
export async function orFailedAnswer(
  exchange: Exchange,
  door: Door,
  create: () => Promise<Answer>,
  headersFor: (error: TransferError, transfer: Transfer) => Record<string, string> = () => ({}),
): Promise<Answer> {
  try {
    return await create();
  } catch (error) {
    if (!(error instanceof CreatedButFailed)) throw error;
    const headers = headersFor(error, error.created.transfer);
    return failedAnswer(error, error.created, { exchange, door, headers });
  }
}
