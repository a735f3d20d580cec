/** How the tools tell of a transfer: the facts that stand in every result, and what to do next in each state. */
import type { Transfer } from "../transfer/engine.ts";
import type { TransferStatus } from "../transfer/records.ts";

/** `handle`, `status`, `offset`, and `size` and `expiresAt` where there are such. */
export function transferFacts(transfer: Transfer): {
  handle: string;
  status: TransferStatus;
  offset: number;
  size?: number;
  expiresAt?: string;
} {
  return {
    handle: transfer.handle,
    status: transfer.status,
    offset: transfer.offset,
    ...(transfer.sizeBytes !== null && { size: transfer.sizeBytes }),
    ...(transfer.expiresAt !== null && { expiresAt: transfer.expiresAt.toISOString() }),
  };
}

/** What to do about a transfer, whoever sends its bytes. */
export function nextStepFor(transfer: Transfer): string {
  const wait = `call upload_status with handle "${transfer.handle}" and waitMs 40000`;
  switch (transfer.status) {
    case "receiving":
      return transfer.bytesPerSecond === null
        ? `The next byte expected is at offset ${transfer.offset}. If the upload is not running, call upload_resume with handle "${transfer.handle}" for a command that goes on from there; while it runs, ${wait}.`
        : `Bytes are arriving: ${wait} until status is "complete".`;
    case "verifying":
      return `All bytes are here and the digest is being checked: ${wait}.`;
    case "complete":
      return `The file is stored; compare sha256 with that of your copy. Call file_download with handle "${transfer.handle}" for a URL, or file_read to look into it.`;
    case "mismatch":
      return `The bytes do not have the sha256 announced. Call upload_resume with handle "${transfer.handle}" and send the whole file again from offset 0.`;
    case "expired":
      return "This upload has expired. Call upload_create to start a new one.";
  }
}
