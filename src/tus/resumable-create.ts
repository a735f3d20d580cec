/**
 * `POST /files` with `Upload-Complete`: upload creation of Resumable Uploads for HTTP. With `?1` the body is the whole file, and the answer
 * is the final one; with `?0` more follows at `Location`.
 */
import { parse as parseDisposition } from "content-disposition";
import type { Created, CreateRequest } from "../transfer/engine.ts";
import { createdHeaders, failedAnswer, orFailedAnswer } from "./created-answer.ts";
import { readContentDigest, readReprDigest } from "./digest-fields.ts";
import { type Door, digestPending, isDigestPending } from "./door.ts";
import type { Answer, Exchange } from "./exchange.ts";
import { finalAnswer } from "./final-answer.ts";
import { interimResponses } from "./interim-responses.ts";
import { bodyLengthOf, withBody } from "./request-body.ts";
import { errorHeaders } from "./resumable-problems.ts";
import { completeHeader, isPartialMedia, limitHeader } from "./resumable-protocol.ts";
import { announcedLength, bodyBytesOf, requireComplete } from "./resumable-request.ts";
import { offsetHeader } from "./transfer-headers.ts";
import { keptContentType, keptFilename } from "./upload-metadata.ts";

/** `Content-Disposition` names the file (RFC 6266); one that cannot be read says nothing. */
function filenameOf(exchange: Exchange): string | null {
  const disposition = exchange.header("content-disposition");
  if (disposition === null) return null;
  let filename: string | undefined;
  try {
    filename = parseDisposition(disposition).parameters.filename;
  } catch {
    return null;
  }
  return filename === undefined || filename === "" ? null : keptFilename(filename);
}

function createRequestOf(exchange: Exchange, sizeBytes: number | null): CreateRequest {
  const type = isPartialMedia(exchange) ? null : exchange.header("content-type");
  return {
    filename: filenameOf(exchange),
    contentType: type === null ? null : keptContentType(type),
    metadata: null,
    sizeBytes,
    sha256: readReprDigest(exchange),
    idempotencyKey: null,
  };
}

function answerFor(created: Created, exchange: Exchange, door: Door): Answer {
  const { transfer } = created;
  const { limits } = door.engine;
  if (isDigestPending(transfer)) {
    const error = digestPending(transfer);
    return failedAnswer(error, created, { exchange, door, headers: errorHeaders(error, transfer, limits) });
  }
  const isReceiving = transfer.status === "receiving";
  const headers = {
    ...createdHeaders(created, door),
    ...offsetHeader(transfer),
    ...completeHeader(!isReceiving),
    ...limitHeader(limits, transfer),
  };
  return isReceiving ? { status: 201, headers } : finalAnswer(transfer, headers);
}

export async function createResumable(exchange: Exchange, door: Door, principal: string): Promise<Answer> {
  const { engine, links } = door;
  const complete = requireComplete(exchange);
  const length = bodyLengthOf(exchange);
  const bytes = bodyBytesOf(length);
  const request = createRequestOf(exchange, announcedLength(exchange, { offset: 0, complete, bytes }));
  const checksums = readContentDigest(exchange);
  if (length.kind === "none") return answerFor(await engine.create(principal, request), exchange, door);
  const interim = interimResponses(exchange, engine.limits);
  return orFailedAnswer(
    exchange,
    door,
    async () => {
      const append = { offset: 0, final: complete, checksums, onCommitted: interim.committed };
      const created = await withBody(
        exchange,
        { idleTimeoutMs: door.idleTimeoutMs, lengthBytes: bytes },
        (body, onAccepted) =>
          engine.createWith(principal, request, { ...append, body, onAccepted }, ({ ticket, transfer }) =>
            interim.created(links.upload(ticket), transfer),
          ),
      );
      return answerFor(created, exchange, door);
    },
    (error, transfer) => errorHeaders(error, transfer, engine.limits),
  );
}
