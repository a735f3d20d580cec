/** A final upload made of partial ones (tus Concatenation): checked and recorded in one transaction, then verified like every file. */
import { createHash } from "node:crypto";
import { TransferError } from "../errors.ts";
import type { Completion } from "./completion.ts";
import { CreatedButFailed } from "./created-but-failed.ts";
import type { ConcatenateRequest, Created, TransferLimits } from "./engine.ts";
import { isTicket, newHandle, newTicket, ticketHash } from "./identifiers.ts";
import type { UploadRecord } from "./records.ts";
import type { ConcatenateOutcome, Liveness, TransferState } from "./state-store.ts";
import { digestMismatch, expired, toTransfer, unknownHandle } from "./view.ts";

interface Parts {
  readonly state: TransferState;
  readonly liveness: Liveness;
  readonly limits: TransferLimits;
  readonly completion: Completion;
  /** Throws `storage_full`. */
  readonly checkSpace: () => Promise<void>;
}

/** See `TransferEngine.concatenate`. */
export async function concatenateUploads(
  { state, liveness, limits, completion, checkSpace }: Parts,
  principal: string,
  request: ConcatenateRequest,
): Promise<Created> {
  const strange = request.tickets.findIndex((ticket) => !isTicket(ticket));
  if (strange !== -1) throw unknownHandle();
  await checkSpace();
  const ticket = newTicket();
  const { filename, contentType, metadata, sha256, uploadConcat } = request;
  const outcome = await state.concatenate({
    handle: newHandle(),
    principal,
    filename,
    contentType,
    metadata,
    declaredSha256: sha256,
    uploadConcat,
    partials: request.tickets.map(ticketHash),
    maxSizeBytes: limits.maxFileBytes,
    ttlMs: limits.uploadTtlMs,
    ticket: { hash: ticketHash(ticket), kind: "upload", ttlMs: null },
    owner: liveness.processId,
    argumentsHash: createHash("sha256")
      .update(JSON.stringify([metadata, sha256]))
      .digest("hex"),
  });
  if (outcome.kind !== "created" && outcome.kind !== "existing") throw refusal(outcome, limits);
  const { upload, now } = outcome;
  const created = (record: UploadRecord): Created => ({
    transfer: toTransfer(record, now),
    ticket,
    created: outcome.kind === "created",
  });
  const verified = await outcomeOf(upload, { state, liveness, completion });
  if (verified.status === "mismatch") throw new CreatedButFailed(digestMismatch(verified), created(verified));
  return created(verified);
}

/** Waits as the last request of any upload does; a verification that another process runs is only looked at. */
async function outcomeOf(
  upload: UploadRecord,
  { state, liveness, completion }: Pick<Parts, "state" | "liveness" | "completion">,
): Promise<UploadRecord> {
  if (upload.status !== "verifying") return upload;
  if (upload.leaseOwner === liveness.processId || completion.isVerifying(upload.handle)) {
    return completion.verify(upload, upload.declaredSha256 !== null);
  }
  return (await state.findUpload(upload.handle))?.upload ?? upload;
}

function refusal(
  outcome: Exclude<ConcatenateOutcome, { kind: "created" | "existing" }>,
  limits: TransferLimits,
): TransferError {
  switch (outcome.kind) {
    case "unknown":
      return unknownHandle();
    case "expired":
      return expired(outcome.upload);
    case "not_partial":
      return new TransferError(
        "invalid_param",
        `Upload ${outcome.index + 1} of the list is no partial upload.`,
        {
          param: "Upload-Concat",
          recoveryHint: "List only uploads that were created with 'Upload-Concat: partial'.",
        },
      );
    case "unfinished": {
      const { offset, sizeBytes } = outcome.upload;
      return new TransferError(
        "not_active",
        `Upload ${outcome.index + 1} of the list is not finished: ${offset} of ${sizeBytes ?? "?"} bytes are here.`,
        {
          retryable: true,
          recoveryHint: `Send the bytes from offset ${offset} to upload ${outcome.index + 1} of the list, then repeat this request.`,
          extra: { unfinished: { position: outcome.index + 1, offset, size: sizeBytes } },
        },
      );
    }
    case "size":
      return new TransferError(
        "file_too_large",
        `The parts have ${outcome.sizeBytes} bytes together; files of up to ${limits.maxFileBytes} are accepted.`,
      );
    case "conflict":
      return new TransferError(
        "idempotency_conflict",
        "These partial uploads were made into one before, with other metadata.",
        { recoveryHint: "Repeat the first request exactly, or upload the parts again." },
      );
    case "taken":
      return new TransferError("internal_error", "Something went wrong inside the server.");
    default:
      return outcome satisfies never;
  }
}
