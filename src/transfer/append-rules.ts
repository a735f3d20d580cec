/** What an append is judged by before anything is touched, and the errors that its rules raise. */
import { TransferError } from "../errors.ts";
import { BodyChecksums } from "./body-checksum.ts";
import type { AppendRequest, TransferLimits } from "./engine.ts";
import type { StoredStatus, UploadRecord } from "./records.ts";
import { isExpired, unknownHandle } from "./view.ts";

export function statusFor(declaredSha256: string | null, sha256: string): StoredStatus {
  return declaredSha256 === null || declaredSha256 === sha256 ? "complete" : "mismatch";
}

export function checksumsOf({ checksums = [], lateChecksum = null }: AppendRequest): BodyChecksums | null {
  return checksums.length === 0 && lateChecksum === null ? null : new BodyChecksums(checksums, lateChecksum);
}

/** A digest of the whole that comes with this request may not contradict one that came before. */
export function checkDeclared(
  { declaredSha256, offset, concat }: UploadRecord,
  { declareSha256 = null }: AppendRequest,
): void {
  if (declareSha256 !== null && concat === "partial") {
    // It would not be looked at, and 2xx would say that it was.
    throw new TransferError("invalid_param", "A partial upload has no digest of its own.", {
      param: "sha256",
      cursor: offset,
      recoveryHint: "Leave the digest out here; announce that of the whole file with the final upload.",
    });
  }
  if (declareSha256 === null || declaredSha256 === null || declareSha256 === declaredSha256) return;
  throw new TransferError("invalid_param", "Another sha256 was announced for this upload before.", {
    param: "sha256",
    cursor: offset,
    recoveryHint: `Announce ${declaredSha256} again or no digest, and send the bytes from offset ${offset}; for another file create a new upload.`,
  });
}

export function isFull(error: unknown): boolean {
  return error instanceof TransferError && error.code === "storage_full";
}

export function reserveReached(cursor?: number): TransferError {
  return new TransferError(
    "storage_full",
    "The disk has less free space than this server keeps in reserve.",
    {
      retryAfterSeconds: 30,
      ...(cursor !== undefined && { cursor }),
    },
  );
}

/** The upload takes no bytes any more, or is not the one that was looked up. */
export function inactive(found: UploadRecord, now: number, before: UploadRecord): TransferError {
  if (isExpired(found, now) || found.generation !== before.generation) return unknownHandle();
  return new TransferError("not_active", `The upload is ${found.status}: it takes no bytes.`, {
    cursor: found.offset,
  });
}

export function tooMany(): TransferError {
  return new TransferError("size_mismatch", "The body has more bytes than were announced.");
}

export function tooLarge(limits: TransferLimits): TransferError {
  return new TransferError("file_too_large", `Files of up to ${limits.maxFileBytes} bytes are accepted.`);
}

export function brokenOff(upload: UploadRecord): TransferError {
  return new TransferError("size_mismatch", "The body ended before its announced length.", {
    cursor: upload.offset,
  });
}

/** What the request announces against what is known, before anything is touched. */
export function checkAnnounced(upload: UploadRecord, request: AppendRequest, limits: TransferLimits): void {
  const cursor = upload.offset;
  const declared = request.declareSizeBytes ?? null;
  if (declared !== null && upload.sizeBytes !== null && declared !== upload.sizeBytes) {
    throw new TransferError("size_mismatch", `The upload has ${upload.sizeBytes} bytes, not ${declared}.`, {
      cursor,
    });
  }
  const size = upload.sizeBytes ?? declared;
  if (size !== null && size > limits.maxFileBytes) {
    throw tooLarge(limits).with({ cursor });
  }
  if (declared !== null && declared < upload.offset) {
    throw new TransferError("size_mismatch", `${upload.offset} bytes are here already.`, { cursor });
  }
  const { lengthBytes } = request.body;
  if (lengthBytes === null) return;
  const end = request.offset + lengthBytes;
  if (size === null && end > limits.maxFileBytes) {
    throw tooLarge(limits).with({ cursor });
  }
  if (size !== null && (end > size || (request.final === true && end !== size))) {
    throw new TransferError("size_mismatch", `The upload has ${size} bytes; this body would end at ${end}.`, {
      cursor,
    });
  }
}
