/** `POST /files`: tus Creation, Creation With Upload and Creation Defer Length. */
import { TransferError } from "../errors.ts";
import type { CreateRequest } from "../transfer/engine.ts";
import { CreatedButFailed } from "../transfer/created-but-failed.ts";
import { readSize } from "./byte-count.ts";
import { type Door, isDigestPending } from "./door.ts";
import type { Answer, Exchange } from "./exchange.ts";
import { problemAnswer } from "./render.ts";
import { bodyLengthOf, withBody } from "./request-body.ts";
import { expiryHeaders, offsetHeader, transferHeaders } from "./transfer-headers.ts";
import { isOffsetMedia, offsetMediaType } from "./tus-protocol.ts";
import { readUploadMetadata } from "./upload-metadata.ts";

/** `Upload-Length` or `Upload-Defer-Length: 1`, exactly one of them; null for the latter. */
function announcedSize(exchange: Exchange): number | null {
  const length = exchange.header("upload-length");
  const deferred = exchange.header("upload-defer-length");
  if (length !== null && deferred !== null) {
    throw new TransferError("invalid_param", "Upload-Length and Upload-Defer-Length cannot both be there.", {
      param: "Upload-Defer-Length",
      recoveryHint: "Send only one of Upload-Length and Upload-Defer-Length.",
    });
  }
  if (length !== null) return readSize("Upload-Length", length);
  if (deferred === "1") return null;
  throw deferred === null
    ? new TransferError("invalid_param", "Upload-Length is missing.", {
        param: "Upload-Length",
        recoveryHint: "Send Upload-Length with the size in bytes, or 'Upload-Defer-Length: 1'.",
      })
    : new TransferError("invalid_param", "Upload-Defer-Length must be 1.", { param: "Upload-Defer-Length" });
}

function createRequestOf(exchange: Exchange): CreateRequest {
  const sizeBytes = announcedSize(exchange);
  const metadata = exchange.header("upload-metadata");
  return {
    ...(metadata === null
      ? { filename: null, contentType: null, sha256: null }
      : readUploadMetadata(metadata)),
    metadata,
    sizeBytes,
    idempotencyKey: null,
  };
}

/** True where the request brings the first bytes; throws where it brings some of another kind. */
function bringsBytes(exchange: Exchange): boolean {
  const length = bodyLengthOf(exchange);
  if (length.kind === "none") return false;
  if (isOffsetMedia(exchange)) return true;
  if (length.kind === "known" && length.bytes === 0) return false;
  throw new TransferError("unsupported_media_type", `A body must be of type ${offsetMediaType}.`);
}

export async function createUpload(exchange: Exchange, door: Door, principal: string): Promise<Answer> {
  const request = createRequestOf(exchange);
  if (!bringsBytes(exchange)) {
    const { transfer, ticket } = await door.engine.create(principal, request);
    return {
      status: 201,
      headers: {
        Location: door.links.upload(ticket),
        // tus-js-client asked for bytes in the creation and for a deferred length sends none, and still wants to be told.
        ...offsetHeader(transfer),
        ...transferHeaders(transfer),
        ...expiryHeaders(transfer),
      },
    };
  }
  const length = bodyLengthOf(exchange);
  const lengthBytes = length.kind === "known" ? length.bytes : null;
  try {
    const { transfer, ticket } = await withBody(
      exchange,
      { idleTimeoutMs: door.idleTimeoutMs, lengthBytes },
      (body, onAccepted) => door.engine.createWith(principal, request, { offset: 0, body, onAccepted }),
    );
    return {
      status: 201,
      headers: {
        Location: door.links.upload(ticket),
        // Without an offset a client asks with HEAD, which knows more by then; the URL must not be lost.
        ...(isDigestPending(transfer) ? {} : offsetHeader(transfer)),
        ...transferHeaders(transfer),
        ...expiryHeaders(transfer),
      },
    };
  } catch (error) {
    if (!(error instanceof CreatedButFailed)) throw error;
    const { ticket, transfer } = error.created;
    const answer = problemAnswer(error, exchange.requestId);
    return {
      ...answer,
      headers: {
        ...answer.headers,
        Location: door.links.upload(ticket),
        // Its status may have changed since; the handle has not.
        "Longshore-Handle": transfer.handle,
      },
    };
  }
}
