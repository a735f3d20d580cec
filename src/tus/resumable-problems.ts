/** Errors as Resumable Uploads for HTTP tells them: its problem types (section "Problem Types") on top of what every error says. */
import { TransferError } from "../errors.ts";
import type { Transfer, TransferLimits } from "../transfer/engine.ts";
import type { Exchange } from "./exchange.ts";
import { completeHeader, limitHeader, readCount } from "./resumable-protocol.ts";

const registry = "https://iana.org/assignments/http-problem-types";

/** Two lengths that cannot both be that of the representation (section "Length"). */
export function inconsistentLength(message: string): TransferError {
  return new TransferError("size_mismatch", message, {
    status: 400,
    recoveryHint:
      "Announce the same length in every request of an upload; for another file create a new upload.",
    problem: { type: `${registry}#inconsistent-upload-length`, title: "Inconsistent Upload Length Values" },
  });
}

/** The error with the problem type of the draft, where it has one. */
export function withProblemType(error: TransferError, exchange: Exchange): TransferError {
  const { cursor } = error.options;
  if (error.code !== "offset_mismatch" || cursor === undefined) return error;
  return error.with({
    problem: {
      type: `${registry}#mismatching-upload-offset`,
      title: "Mismatching Upload Offset",
      members: { "expected-offset": cursor, "provided-offset": readCount(exchange, "upload-offset") },
    },
  });
}

/**
 * Fields of an error. `Upload-Complete` is true only where the upload itself has come to this: all bytes are here and are not the file
 * announced, so that resuming would not help (section "Upload Append").
 */
export function errorHeaders(
  error: TransferError,
  transfer: Transfer | null,
  limits: TransferLimits,
): Record<string, string> {
  const isOutcome = error.code === "checksum_mismatch" && error.status === 422;
  return { ...completeHeader(isOutcome), ...limitHeader(limits, transfer) };
}
