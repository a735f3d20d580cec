/**
 * Which protocol a request on an upload URL speaks. `Tus-Resumable` means tus. Otherwise `Upload-Complete` or the media type
 * `application/partial-upload` means Resumable Uploads for HTTP, with or without its interop header. PUT is plain, with the fields of that
 * draft understood. What says nothing (`bare`) may look, cancel and ask for options, and is told of both protocols.
 */
import { TransferError } from "../errors.ts";
import type { Exchange } from "./exchange.ts";
import { isPartialMedia, readUploadComplete } from "./resumable-protocol.ts";
import { tusVersion } from "./tus-protocol.ts";

export type Protocol = "tus" | "resumable" | "bare";

/** Throws nothing: whether the request may speak it is for `checkProtocol`. */
export function protocolOf(exchange: Exchange): Protocol {
  if (exchange.method !== "PUT" && exchange.header("tus-resumable") !== null) return "tus";
  return readUploadComplete(exchange) !== null || isPartialMedia(exchange) ? "resumable" : "bare";
}

/**
 * Refuses (`unsupported_version`) another version of tus, and creating or appending in no protocol at all: the same request would mean
 * different things in different ones.
 */
export function checkProtocol(exchange: Exchange, protocol: Protocol): void {
  if (protocol === "tus" && exchange.header("tus-resumable") !== tusVersion) {
    throw new TransferError("unsupported_version", "Only version 1.0.0 of tus is spoken here.");
  }
  if (protocol === "bare" && (exchange.method === "POST" || exchange.method === "PATCH")) {
    throw new TransferError(
      "unsupported_version",
      "The request does not say which upload protocol it speaks.",
      {
        recoveryHint:
          "Send 'Tus-Resumable: 1.0.0', or 'Upload-Complete: ?1' (or ?0) for Resumable Uploads for HTTP.",
      },
    );
  }
}
