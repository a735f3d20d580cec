/** What an archive is refused for. */
import { TransferError } from "../../../errors.ts";

/** Its content is not what may be extracted. `what` completes "The archive is refused: …". */
export function refused(what: string): TransferError {
  return new TransferError("task_failed", `The archive is refused: ${what}.`, {
    recoveryHint:
      "Make an archive without that, upload it, and call file_extract with its handle. Nothing of this one was kept.",
  });
}

export function damaged(what: string): TransferError {
  return new TransferError("task_failed", `The archive is damaged: ${what}.`, {
    recoveryHint:
      "Make the archive again, upload it, and call file_extract with its handle. Nothing of this one was kept.",
  });
}

export function tooLarge(what: string): TransferError {
  return new TransferError("task_failed", `The archive is too large to extract here: ${what}.`, {
    recoveryHint:
      "Split it into smaller archives, upload those, and call file_extract with each. Nothing of this one was kept.",
  });
}

export function noArchive(): TransferError {
  return new TransferError(
    "invalid_param",
    "handle: this file is neither a zip archive nor a tar, packed with gzip or not.",
    {
      param: "handle",
      retryable: false,
      recoveryHint: "Call file_extract with the handle of a zip, tar or tar.gz file.",
    },
  );
}

/** For messages: names come from whoever made the archive, and may be long. */
export function quoted(name: string): string {
  return JSON.stringify(name.length > 100 ? `${name.slice(0, 99)}…` : name);
}

/** An error of a library that reads archives is about the archive; one of the catalogue is about something else. */
export function asDamage(error: unknown): TransferError {
  if (error instanceof TransferError) return error;
  const message = error instanceof Error ? error.message : String(error);
  // Some name the path, and in words that fit no sentence of ours.
  if (/^(?:invalid relative path|absolute path|invalid characters in fileName)/.test(message)) {
    return refused(`one of its names is not allowed (${message.slice(0, 200)})`);
  }
  return damaged(message.slice(0, 200).replace(/\.$/, ""));
}
