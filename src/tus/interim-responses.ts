/**
 * `104 (Upload Resumption Supported)` while a body is on its way: first where the upload is, then how much of it is safe. Sent only to
 * clients that speak the same draft, and only where Node can send it (24 can, 22 cannot); nothing depends on it.
 */
import type { Transfer, TransferLimits } from "../transfer/engine.ts";
import type { Exchange } from "./exchange.ts";
import { interopVersion, limitHeader, speaksInteropVersion } from "./resumable-protocol.ts";

export interface InterimResponses {
  /** Where the upload can be gone on with; at most once, and before all else. */
  created(location: string, transfer: Transfer | null): void;
  /** Bytes up to here never have to be sent again. Without `Location`, as the draft wants it. */
  committed(offset: number): void;
}

type WriteInformation = (status: number, headers: Record<string, string>) => unknown;

export function interimResponses(exchange: Exchange, limits: TransferLimits): InterimResponses {
  const write = writerOf(exchange);
  const version = { "Upload-Draft-Interop-Version": String(interopVersion) };
  return {
    created: (location, transfer) =>
      write?.(104, { Location: location, ...limitHeader(limits, transfer), ...version }),
    committed: (offset) => write?.(104, { "Upload-Offset": String(offset), ...version }),
  };
}

function writerOf(exchange: Exchange): WriteInformation | null {
  const { node } = exchange;
  if (node === null || !speaksInteropVersion(exchange)) return null;
  const { incoming, outgoing } = node;
  // HTTP/1.0 knows no interim responses, and HTTP/2 answers through another class.
  if (incoming.httpVersion !== "1.1") return null;
  const { writeInformation } = outgoing as { writeInformation?: WriteInformation };
  if (typeof writeInformation !== "function") return null;
  return (status, headers) => {
    if (!outgoing.headersSent && !outgoing.destroyed) writeInformation.call(outgoing, status, headers);
  };
}
