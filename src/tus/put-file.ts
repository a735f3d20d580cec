/**
 * `PUT` on an upload URL, for tools that know nothing of resumable uploads: the whole file, or a piece with `Content-Range`
 * (RFC 9110 section 14.5).
 *
 * A body that starts at 0 may come again over what is here already: its first bytes are compared, the rest is appended. So the same
 * command run twice ends right.
 */
import { TransferError } from "../errors.ts";
import type { AppendRequest, Transfer } from "../transfer/engine.ts";
import { readContentRange } from "./content-range.ts";
import { type Door, digestPending, isDigestPending, ticketOf } from "./door.ts";
import type { Answer, Exchange } from "./exchange.ts";
import { type BodyLength, bodyLengthOf, withBody } from "./request-body.ts";
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

function wholeFile(length: BodyLength): Piece {
  const lengthBytes = length.kind === "known" ? length.bytes : null;
  return { lengthBytes, append: { offset: 0, resend: true, declareSizeBytes: lengthBytes, final: true } };
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

function answerFor(transfer: Transfer): Answer {
  const headers = { ...offsetHeader(transfer), ...transferHeaders(transfer), ...expiryHeaders(transfer) };
  if (transfer.status === "receiving") return { status: 204, headers };
  const { handle, status, offset, sizeBytes, sha256 } = transfer;
  const facts = { handle, status, offset, size: sizeBytes, ...(sha256 !== null && { sha256 }) };
  return {
    status: 200,
    headers: { ...headers, "Content-Type": "application/json" },
    body: `${JSON.stringify(facts)}\n`,
  };
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
        : wholeFile(length);
  if (range !== null && length.kind === "none" && piece.lengthBytes !== 0) {
    throw new TransferError("content_length_required", "The request has neither Content-Length nor a body.");
  }
  const { transfer } = await withBody(
    exchange,
    { idleTimeoutMs: door.idleTimeoutMs, lengthBytes: piece.lengthBytes },
    (body, onAccepted) => door.engine.append(ticket, { ...piece.append, body, onAccepted }),
  );
  if (isDigestPending(transfer)) throw digestPending(transfer);
  return answerFor(transfer);
}
