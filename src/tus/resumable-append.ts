/** `PATCH` with `application/partial-upload`: upload append of Resumable Uploads for HTTP. */
import { TransferError } from "../errors.ts";
import { readContentDigest, readReprDigest } from "./digest-fields.ts";
import { type Door, digestPending, isDigestPending, ticketOf } from "./door.ts";
import type { Answer, Exchange } from "./exchange.ts";
import { finalAnswer } from "./final-answer.ts";
import { interimResponses } from "./interim-responses.ts";
import { bodyLengthOf, withBody } from "./request-body.ts";
import { inconsistentLength } from "./resumable-problems.ts";
import {
  completeHeader,
  isPartialMedia,
  limitHeader,
  partialMediaType,
  readCount,
} from "./resumable-protocol.ts";
import { announcedLength, bodyBytesOf, requireComplete } from "./resumable-request.ts";
import { offsetHeader, transferHeaders } from "./transfer-headers.ts";

function requireOffset(exchange: Exchange): number {
  const offset = readCount(exchange, "upload-offset");
  if (offset !== null) return offset;
  throw new TransferError("invalid_param", "Upload-Offset is missing.", {
    param: "Upload-Offset",
    recoveryHint: "Send Upload-Offset with the position of the first byte of the body.",
  });
}

/** The engine knows one error for sizes that do not fit; a length that contradicts an earlier one has a problem type of its own. */
async function explained(
  thrown: unknown,
  announced: number | null,
  ticket: string,
  door: Door,
): Promise<unknown> {
  if (!(thrown instanceof TransferError) || thrown.code !== "size_mismatch" || announced === null)
    return thrown;
  const known = await door.engine.head(ticket, { disturb: false }).catch(() => null);
  if (known === null || known.sizeBytes === null || known.sizeBytes === announced) return thrown;
  const { options, message } = thrown;
  return inconsistentLength(message).with({
    ...(options.cursor !== undefined && { cursor: options.cursor }),
  });
}

export async function appendResumable(exchange: Exchange, door: Door): Promise<Answer> {
  const ticket = ticketOf(exchange);
  if (!isPartialMedia(exchange)) {
    throw new TransferError(
      "unsupported_media_type",
      `The Content-Type of PATCH must be ${partialMediaType}.`,
      {
        recoveryHint: `Send 'Content-Type: ${partialMediaType}'.`,
      },
    );
  }
  const offset = requireOffset(exchange);
  const complete = requireComplete(exchange);
  const bytes = bodyBytesOf(bodyLengthOf(exchange));
  const declareSizeBytes = announcedLength(exchange, { offset, complete, bytes });
  const { limits } = door.engine;
  const append = {
    offset,
    final: complete,
    declareSizeBytes,
    // Before the last request it may as well be the digest of what is there so far.
    declareSha256: complete ? readReprDigest(exchange) : null,
    checksums: readContentDigest(exchange),
    onCommitted: interimResponses(exchange, limits).committed,
  };
  const { transfer } = await withBody(
    exchange,
    { idleTimeoutMs: door.idleTimeoutMs, lengthBytes: bytes },
    (body, onAccepted) => door.engine.append(ticket, { ...append, body, onAccepted }),
  ).catch(async (error: unknown) => {
    throw await explained(error, declareSizeBytes, ticket, door);
  });
  if (isDigestPending(transfer)) throw digestPending(transfer);
  const isReceiving = transfer.status === "receiving";
  const headers = {
    ...offsetHeader(transfer),
    ...completeHeader(!isReceiving),
    ...limitHeader(limits, transfer),
    ...transferHeaders(transfer),
  };
  return isReceiving ? { status: 204, headers } : finalAnswer(transfer, headers);
}
