/**
 * `HEAD` and `DELETE` on an upload URL: tus Core and Termination, offset retrieval and cancellation of Resumable Uploads for HTTP
 * (whose GET tells the same as HEAD). Both protocols' fields are told unless the request says that it speaks tus.
 *
 * HEAD answers only 200, 404, 410, 422 and 423, since clients take any other status for the end of the upload and start a new one
 * (the one exception is 412 for a version of tus that is not spoken here, which the protocol demands).
 */
import { TransferError } from "../errors.ts";
import type { Transfer } from "../transfer/engine.ts";
import { wrongBytesAdvice } from "../transfer/view.ts";
import { type Door, digestPending, ticketOf } from "./door.ts";
import type { Answer, Exchange } from "./exchange.ts";
import { protocolOf } from "./protocol-choice.ts";
import { completeHeader, isComplete, limitHeader } from "./resumable-protocol.ts";
import { expiryHeaders, offsetHeader, transferHeaders } from "./transfer-headers.ts";
import { tusOptionHeaders } from "./tus-protocol.ts";

const headStatuses: ReadonlySet<number> = new Set([404, 410, 412, 422, 423]);

/** Any temporary trouble, as HEAD tells it. */
export function asHeadError(error: TransferError): TransferError {
  if (headStatuses.has(error.status)) return error;
  return new TransferError("upload_locked", "The upload cannot be looked at right now.", {
    retryAfterSeconds: error.options.retryAfterSeconds ?? 5,
    cause: error,
  });
}

function wrongDigest(transfer: Transfer): TransferError {
  return new TransferError(
    "checksum_mismatch",
    "All bytes are here, but they are not the file that was announced.",
    { cursor: transfer.offset, ...wrongBytesAdvice(transfer) },
  );
}

function lengthHeaders(transfer: Transfer): Record<string, string> {
  return transfer.sizeBytes === null
    ? { "Upload-Defer-Length": "1" }
    : { "Upload-Length": String(transfer.sizeBytes) };
}

/** `Upload-Concat` as it was received (tus Concatenation). */
function concatHeader({ concat, uploadConcat }: Transfer): Record<string, string> {
  if (concat === "partial") return { "Upload-Concat": "partial" };
  return uploadConcat === null ? {} : { "Upload-Concat": uploadConcat };
}

export async function headUpload(exchange: Exchange, door: Door): Promise<Answer> {
  const transfer = await door.engine.head(ticketOf(exchange));
  if (transfer.status === "verifying") throw digestPending(transfer);
  if (transfer.status === "mismatch") throw wrongDigest(transfer);
  const { limits } = door.engine;
  const isTus = protocolOf(exchange) === "tus";
  return {
    status: exchange.method === "GET" ? 204 : 200,
    headers: {
      // One that says nothing learns here what is spoken; a tus client is told nothing new.
      ...(!isTus && {
        ...tusOptionHeaders(limits),
        ...completeHeader(isComplete(transfer)),
        ...limitHeader(limits, transfer),
      }),
      "Cache-Control": "no-store",
      ...offsetHeader(transfer),
      ...lengthHeaders(transfer),
      ...concatHeader(transfer),
      ...(transfer.metadata !== null && { "Upload-Metadata": transfer.metadata }),
      ...transferHeaders(transfer),
      ...expiryHeaders(transfer),
    },
  };
}

export async function deleteUpload(exchange: Exchange, door: Door): Promise<Answer> {
  const ticket = ticketOf(exchange);
  // Looked at only for the answer: what is past its time cannot be looked at any more, but still be removed.
  const known = await door.engine.head(ticket, { disturb: false }).catch((): Transfer | null => null);
  await door.engine.remove(ticket);
  return {
    status: 204,
    headers: { ...(known !== null && { "Longshore-Handle": known.handle }), "Longshore-Status": "deleted" },
  };
}
