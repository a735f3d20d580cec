/** What an upload has come to, as JSON: the answer to the last request where the protocol has a body for it. */
import type { Transfer } from "../transfer/engine.ts";
import type { Answer } from "./exchange.ts";

export function finalAnswer(transfer: Transfer, headers: Record<string, string>): Answer {
  const { handle, status, offset, sizeBytes, sha256 } = transfer;
  const facts = { handle, status, offset, size: sizeBytes, ...(sha256 !== null && { sha256 }) };
  return {
    status: 200,
    headers: { ...headers, "Content-Type": "application/json" },
    body: `${JSON.stringify(facts)}\n`,
  };
}
