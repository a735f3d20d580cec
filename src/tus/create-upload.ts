/** `POST /files`: tus Creation, Creation With Upload, Creation Defer Length and Concatenation. */
import { TransferError } from "../errors.ts";
import type { CreateRequest } from "../transfer/engine.ts";
import { readSize } from "./byte-count.ts";
import { concatUploads } from "./concat-uploads.ts";
import { createdHeaders, orFailedAnswer } from "./created-answer.ts";
import { type Door, isDigestPending } from "./door.ts";
import type { Answer, Exchange } from "./exchange.ts";
import { bodyLengthOf, withBody } from "./request-body.ts";
import { offsetHeader } from "./transfer-headers.ts";
import { isOffsetMedia, offsetMediaType } from "./tus-protocol.ts";
import { readBodyDigests } from "./upload-checksum.ts";
import { parseUploadConcat } from "./upload-concat.ts";
import { describedBy } from "./upload-metadata.ts";

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

function createRequestOf(exchange: Exchange, concat: "whole" | "partial"): CreateRequest {
  const sizeBytes = announcedSize(exchange);
  return { ...describedBy(exchange), sizeBytes, idempotencyKey: null, concat };
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
  const concat = exchange.header("upload-concat");
  const role = concat === null ? null : parseUploadConcat(concat, door.links);
  if (role?.kind === "final") {
    return concatUploads(exchange, door, principal, { uploadConcat: concat ?? "", tickets: role.tickets });
  }
  const request = createRequestOf(exchange, role === null ? "whole" : "partial");
  if (!bringsBytes(exchange)) {
    // An empty file is complete at once, and may not be the one announced.
    return orFailedAnswer(exchange, door, async () => {
      const created = await door.engine.create(principal, request);
      // tus-js-client asked for bytes in the creation and for a deferred length sends none, and still wants to be told.
      return {
        status: 201,
        headers: { ...createdHeaders(created, door), ...offsetHeader(created.transfer) },
      };
    });
  }
  const digests = readBodyDigests(exchange);
  const length = bodyLengthOf(exchange);
  const lengthBytes = length.kind === "known" ? length.bytes : null;
  return orFailedAnswer(exchange, door, async () => {
    const created = await withBody(
      exchange,
      { idleTimeoutMs: door.idleTimeoutMs, lengthBytes },
      (body, onAccepted) =>
        door.engine.createWith(principal, request, { offset: 0, body, onAccepted, ...digests }),
    );
    const { transfer } = created;
    return {
      status: 201,
      headers: {
        ...createdHeaders(created, door),
        // Without an offset a client asks with HEAD, which knows more by then; the URL must not be lost.
        ...(isDigestPending(transfer) ? {} : offsetHeader(transfer)),
      },
    };
  });
}
