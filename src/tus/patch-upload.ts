/** `PATCH` on an upload URL: tus Core, with `Upload-Length` where the length was deferred, and Checksum. */
import { TransferError } from "../errors.ts";
import { readPosition, readSize } from "./byte-count.ts";
import { type Door, digestPending, isDigestPending, ticketOf } from "./door.ts";
import type { Answer, Exchange } from "./exchange.ts";
import { bodyLengthOf, withBody } from "./request-body.ts";
import { expiryHeaders, offsetHeader, transferHeaders } from "./transfer-headers.ts";
import { isOffsetMedia, offsetMediaType } from "./tus-protocol.ts";
import { readBodyDigests } from "./upload-checksum.ts";

export async function patchUpload(exchange: Exchange, door: Door): Promise<Answer> {
  if (!isOffsetMedia(exchange)) {
    throw new TransferError(
      "unsupported_media_type",
      `The Content-Type of PATCH must be ${offsetMediaType}.`,
    );
  }
  const offset = exchange.header("upload-offset");
  if (offset === null) {
    throw new TransferError("invalid_param", "Upload-Offset is missing.", {
      param: "Upload-Offset",
      recoveryHint: "Send Upload-Offset with the position of the first byte of the body.",
    });
  }
  const size = exchange.header("upload-length");
  const append = {
    ...readBodyDigests(exchange),
    offset: readPosition("Upload-Offset", offset),
    declareSizeBytes: size === null ? null : readSize("Upload-Length", size),
  };
  const length = bodyLengthOf(exchange);
  const lengthBytes = length.kind === "known" ? length.bytes : length.kind === "none" ? 0 : null;
  const { transfer } = await withBody(
    exchange,
    { idleTimeoutMs: door.idleTimeoutMs, lengthBytes },
    (body, onAccepted) => door.engine.append(ticketOf(exchange), { ...append, body, onAccepted }),
  );
  if (isDigestPending(transfer)) throw digestPending(transfer);
  return {
    status: 204,
    headers: { ...offsetHeader(transfer), ...transferHeaders(transfer), ...expiryHeaders(transfer) },
  };
}
