/** A complete file as its readers get it. */
import { TransferError } from "../errors.ts";
import type { BlobStore } from "./blob-store.ts";
import { type Completion, maxSegments } from "./completion.ts";
import type { OpenFile } from "./engine.ts";
import type { SegmentRecord, UploadRecord } from "./records.ts";
import { isSmallName } from "./small-files.ts";
import type { TransferState } from "./state-store.ts";
import { readStored, streamStored } from "./stored-bytes.ts";
import { toTransfer, unknownHandle } from "./view.ts";

interface OpenFileParts {
  readonly blobs: BlobStore;
  readonly state: Pick<TransferState, "segments">;
  readonly completion: Completion;
}

/** @param found the record of a complete upload, and its segments of about the same moment. */
export function openFile(
  { blobs, state, completion }: OpenFileParts,
  found: {
    readonly upload: UploadRecord;
    readonly now: number;
    readonly sizeBytes: number;
    readonly sha256: string;
    readonly segments: readonly SegmentRecord[];
  },
): OpenFile {
  const { upload, now, sizeBytes, sha256, segments } = found;
  if (segments.length > maxSegments) void completion.compact(upload);
  const lookAgain = () => state.segments(upload.handle);
  return {
    transfer: { ...toTransfer(upload, now), sizeBytes, sha256 },
    stream: (start, end) => streamStored(blobs, segments, start, end, lookAgain),
    bytes: (start, end) => readStored(blobs, segments, start, end, lookAgain),
    path: () => pathOf(upload, { blobs, state, completion }),
  };
}

async function pathOf(
  upload: UploadRecord,
  { blobs, state, completion }: OpenFileParts,
): Promise<string | null> {
  if (upload.offset === 0) return completion.emptyFile(upload);
  // A rewriting that runs already may be one that leaves a few segments alone, so a second round may be needed.
  for (let round = 0; round < 3; round += 1) {
    const [only, ...more] = await state.segments(upload.handle);
    if (only === undefined) throw unknownHandle();
    const small = isSmallName(only.blob);
    if (more.length === 0 && only.blobOffset === 0 && !small) return blobs.path(only.blob);
    await completion.compact(upload, small ? 0 : 1);
  }
  throw new TransferError("storage_unavailable", "The file could not be brought into one piece.", {
    retryAfterSeconds: 30,
  });
}
