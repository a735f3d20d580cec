/**
 * `PUT` on an upload URL, for tools that know nothing of resumable uploads: the whole file, or a piece with `Content-Range`
 * (RFC 9110 section 14.5).
 *
 * `Upload-Complete` makes it an upload creation of Resumable Uploads for HTTP (which may be any request with a body): what breaks off can be
 * gone on with at the same URL, and with `?0` the body is only the beginning.
 *
 * A body that starts at 0 may come again over what is here already: its first bytes are compared, the rest is appended. So the same
 * command run twice ends right.
 */
import { TransferError } from "../errors.ts";
import type { AppendRequest, Transfer } from "../transfer/engine.ts";
import { readContentRange } from "./content-range.ts";
import { readContentDigest, readReprDigest } from "./digest-fields.ts";
import { type Door, digestPending, isDigestPending, ticketOf } from "./door.ts";
import type { Answer, Exchange } from "./exchange.ts";
import { finalAnswer } from "./final-answer.ts";
import { interimResponses } from "./interim-responses.ts";
import { type BodyLength, bodyLengthOf, withBody } from "./request-body.ts";
import { completeHeader, limitHeader, readUploadComplete } from "./resumable-protocol.ts";
import { announcedLength } from "./resumable-request.ts";
import { expiryHeaders, offsetHeader, transferHeaders } from "./transfer-headers.ts";

interface Piece {
  readonly lengthBytes: number | null;
  readonly append: Omit<AppendRequest, "body" | "onAccepted">;
}

function rangePiece(range: string, length: BodyLength): Piece {
  const { start, end, sizeBytes } = readContentRange(range);
  if (length.kind === "known" && length.bytes !== end - start) {
    throw new TransferError(
      "invalid_param",
      `Content-Range tells of ${end - start} bytes, Content-Length of ${length.bytes}.`,
      {
        param: "Content-Range",
        recoveryHint: "Send Content-Range and Content-Length that agree.",
      },
    );
  }
  return {
    lengthBytes: end - start,
    append: {
      offset: start,
      resend: start === 0,
      declareSizeBytes: sizeBytes,
      final: end === sizeBytes,
    },
  };
}

function wholeFile(exchange: Exchange, length: BodyLength): Piece {
  const lengthBytes = length.kind === "known" ? length.bytes : null;
  const final = readUploadComplete(exchange) !== false;
  const declareSizeBytes =
    readUploadComplete(exchange) === null
      ? lengthBytes
      : announcedLength(exchange, { offset: 0, complete: final, bytes: lengthBytes });
  return { lengthBytes, append: { offset: 0, resend: true, declareSizeBytes, final } };
}

/**
 * A PUT whose header tells no length has no body (RFC 9112 section 6.3). Where bytes are still missing that cannot be what was
 * meant; where all are here it is a question for the final answer.
 */
async function emptyPiece(ticket: string, door: Door): Promise<Piece> {
  const { offset, sizeBytes } = await door.engine.head(ticket, { disturb: false });
  if (sizeBytes === null || offset < sizeBytes) {
    throw new TransferError("content_length_required", "The request has neither Content-Length nor a body.", {
      cursor: offset,
    });
  }
  return { lengthBytes: 0, append: { offset } };
}

/** Fields that only a client of the draft looks at, and none where the request is not of one. */
function resumableHeaders(exchange: Exchange, door: Door, transfer: Transfer): Record<string, string> {
  if (readUploadComplete(exchange) === null) return {};
  return {
    Location: door.links.upload(ticketOf(exchange)),
    ...completeHeader(transfer.status !== "receiving"),
    ...limitHeader(door.engine.limits, transfer),
  };
}

function answerFor(exchange: Exchange, door: Door, transfer: Transfer): Answer {
  const headers = {
    ...offsetHeader(transfer),
    ...transferHeaders(transfer),
    ...expiryHeaders(transfer),
    ...resumableHeaders(exchange, door, transfer),
  };
  if (transfer.status !== "receiving") return finalAnswer(transfer, headers);
  return { status: readUploadComplete(exchange) === false ? 201 : 204, headers };
}

export async function putFile(exchange: Exchange, door: Door): Promise<Answer> {
  const ticket = ticketOf(exchange);
  const length = bodyLengthOf(exchange);
  const range = exchange.header("content-range");
  const piece =
    range !== null
      ? rangePiece(range, length)
      : length.kind === "none"
        ? await emptyPiece(ticket, door)
        : wholeFile(exchange, length);
  if (range !== null && length.kind === "none" && piece.lengthBytes !== 0) {
    throw new TransferError("content_length_required", "The request has neither Content-Length nor a body.");
  }
  const interim = interimResponses(exchange, door.engine.limits);
  const isCreation = readUploadComplete(exchange) !== null;
  const append = {
    ...piece.append,
    declareSha256: piece.append.final === true ? readReprDigest(exchange) : null,
    checksums: readContentDigest(exchange),
    ...(isCreation && { onCommitted: interim.committed }),
  };
  const { transfer } = await withBody(
    exchange,
    { idleTimeoutMs: door.idleTimeoutMs, lengthBytes: piece.lengthBytes },
    (body, onAccepted) =>
      door.engine.append(ticket, {
        ...append,
        body,
        onAccepted: () => {
          if (isCreation) interim.created(door.links.upload(ticket), null);
          onAccepted();
        },
      }),
  );
  if (isDigestPending(transfer)) throw digestPending(transfer);
  return answerFor(exchange, door, transfer);
}
