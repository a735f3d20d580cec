/** What every door is given, and the errors that the doors of one upload raise alike. */
import { TransferError } from "../errors.ts";
import type { Transfer, TransferEngine } from "../transfer/engine.ts";
import type { Links } from "../transfer/links.ts";
import type { Exchange } from "./exchange.ts";

export interface Door {
  readonly engine: TransferEngine;
  readonly links: Links;
  /** Silence on a request body after which it is cut off. */
  readonly idleTimeoutMs: number;
}

/** The secret in the URL; only for routes that have one. */
export function ticketOf(exchange: Exchange): string {
  if (exchange.ticket === null) throw new TransferError("unknown_handle", "There is no such handle.");
  return exchange.ticket;
}

/**
 * 423: the only status that makes tus-js-client and its kin come back for the same upload later. A 2xx would say that the file
 * is good, which nobody knows yet.
 */
export function digestPending(transfer: Transfer): TransferError {
  return new TransferError(
    "upload_locked",
    "All bytes are here; whether their digest is right is still being computed.",
    {
      cursor: transfer.offset,
      retryAfterSeconds: 1,
      recoveryHint:
        "Wait as long as Retry-After says, then ask again with HEAD. No byte has to be sent again.",
    },
  );
}

/** True while the answer to "is this the file that was announced?" is open. */
export function isDigestPending(transfer: Transfer): boolean {
  return transfer.status === "verifying" && transfer.declaredSha256 !== null;
}
