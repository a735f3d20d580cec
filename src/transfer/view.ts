/** Records as callers are shown them, and the judgements that follow from a record alone. */
import { TransferError, type TransferErrorOptions } from "../errors.ts";
import type { Transfer } from "./engine.ts";
import type { TransferStatus, UploadRecord } from "./records.ts";

/** Past its time, and nobody is writing: an active write keeps an upload alive. */
export function isExpired(upload: UploadRecord, now: number): boolean {
  return upload.expiresAt !== null && upload.expiresAt <= now && !upload.leaseActive;
}

export function toTransfer(upload: UploadRecord, now: number): Transfer {
  return {
    handle: upload.handle,
    principal: upload.principal,
    status: isExpired(upload, now) ? "expired" : upload.status,
    filename: upload.filename,
    contentType: upload.contentType,
    metadata: upload.metadata,
    sizeBytes: upload.sizeBytes,
    offset: upload.offset,
    declaredSha256: upload.declaredSha256,
    sha256: upload.sha256,
    createdAt: new Date(upload.createdAt),
    expiresAt: upload.expiresAt === null ? null : new Date(upload.expiresAt),
    completedAt: upload.completedAt === null ? null : new Date(upload.completedAt),
    concat: upload.concat,
    uploadConcat: upload.uploadConcat,
    bytesPerSecond: upload.leaseActive && upload.status === "receiving" ? upload.bytesPerSecond : null,
  };
}

export function unknownHandle(): TransferError {
  return new TransferError("unknown_handle", "There is no such handle.");
}

export function expired({ handle }: UploadRecord): TransferError {
  return new TransferError("transfer_expired", "This transfer is past its time.", {
    about: { handle, status: "expired" },
    recoveryHint: "Start a new upload with upload_create.",
  });
}

/** Only the way to it has ended; the upload itself lives. */
export function urlExpired({ handle }: UploadRecord, status: TransferStatus): TransferError {
  const tool = status === "complete" ? "file_download" : "upload_resume";
  return new TransferError("transfer_expired", "This URL is past its time.", {
    about: { handle, status },
    recoveryHint: `Ask for a fresh URL with ${tool}.`,
    repair: { tool, arguments: { handle } },
  });
}

export function finalUpload(upload: UploadRecord): TransferError {
  return new TransferError("final_upload", "The upload was made of partial uploads: it takes no bytes.", {
    about: { handle: upload.handle, status: upload.status },
    ...(upload.status === "mismatch" && {
      recoveryHint:
        "Call upload_resume for a new URL and send the whole file from offset 0 under the same handle.",
      repair: { tool: "upload_resume", arguments: { handle: upload.handle } },
    }),
  });
}

export function locked(upload: UploadRecord | null): TransferError {
  return new TransferError("upload_locked", "Another request is writing to this upload.", {
    retryAfterSeconds: 2,
    ...(upload !== null && { cursor: upload.offset }),
  });
}

export function offsetMismatch(upload: UploadRecord, got: number): TransferError {
  return new TransferError("offset_mismatch", `Expected offset ${upload.offset}, got ${got}.`, {
    cursor: upload.offset,
    recoveryHint: `Do not resend the whole file. Send the bytes from offset ${upload.offset}.`,
    repair: { tool: "upload_write", arguments: { handle: upload.handle, offset: upload.offset } },
  });
}

const noEmptyFile: TransferErrorOptions = {
  retryable: false,
  recoveryHint:
    "A file of 0 bytes has one sha256 only, another than this. Create a new upload with the right size or without a digest.",
};

/** How a finished upload with another digest than announced is mended: by its bytes, unless it has none. */
export function wrongBytesAdvice({
  handle,
  sizeBytes,
}: Pick<UploadRecord, "handle" | "sizeBytes">): TransferErrorOptions {
  if (sizeBytes === 0) return noEmptyFile;
  return {
    recoveryHint:
      "Call upload_resume for a new URL and send the right file from offset 0 under the same handle.",
    repair: { tool: "upload_resume", arguments: { handle } },
  };
}

export function digestMismatch(upload: UploadRecord): TransferError {
  return new TransferError(
    "checksum_mismatch",
    `All ${upload.offset} bytes are here, but their sha256 is ${upload.sha256}, not ${upload.declaredSha256} as announced.`,
    { status: 422, cursor: upload.offset, ...wrongBytesAdvice(upload) },
  );
}

/** The digest that came with a repeated last request is not that of the file stored long since. */
export function otherFile(upload: UploadRecord, declaredSha256: string): TransferError {
  return new TransferError(
    "checksum_mismatch",
    `The stored file has the sha256 ${upload.sha256}, not ${declaredSha256} as announced.`,
    {
      status: 422,
      cursor: upload.offset,
      retryable: false,
      recoveryHint: "The upload is complete and stays as it is. Create a new upload for another file.",
    },
  );
}

/** What is thrown for a body of another size, where the upload has all its bytes: no other body would be right. */
export function nothingMissing(thrown: unknown): unknown {
  if (!(thrown instanceof TransferError) || thrown.code !== "size_mismatch") return thrown;
  return thrown.with({
    retryable: false,
    recoveryHint:
      "No byte is missing: the upload is complete and stays as it is. Create a new upload for another file.",
  });
}

export function stillVerifying(upload: UploadRecord): TransferError {
  return new TransferError("not_active", "All bytes are here; their digest is still being computed.", {
    cursor: upload.offset,
    retryable: true,
    retryAfterSeconds: 1,
    recoveryHint:
      "Wait as long as Retry-After says, then call upload_status with waitMs until the status is complete.",
    repair: { tool: "upload_status", arguments: { handle: upload.handle, waitMs: 30_000 } },
  });
}

export function quotaExceeded(limit: "bytes" | "files", used: number): TransferError {
  const what = limit === "bytes" ? `${used} bytes are in use` : `${used} files are kept`;
  return new TransferError("quota_exceeded", `The quota of ${limit} does not allow this: ${what}.`);
}
