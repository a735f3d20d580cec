/** Sends a file with tus-js-client, as any tus program would, and tells what the server acknowledged. */
import { createReadStream } from "node:fs";
import { type DetailedError, Upload } from "tus-js-client";

/** Small enough that several pieces are acknowledged before the kill. */
const chunkBytes = 8 * 2 ** 20;

export interface UploadRun {
  /** Offset that the server told when this run began; 0 for a fresh upload. */
  readonly startedAt: number;
  /** Last offset that the server acknowledged. */
  readonly acknowledged: number;
  readonly finished: boolean;
}

/**
 * Resolves at the end, or when the connection breaks: no retries, so that what happens can be told.
 *
 * @param onProgress called with the bytes sent and the bytes acknowledged so far.
 */
export function sendFile(
  path: string,
  sizeBytes: number,
  uploadUrl: string,
  onProgress: (sent: number, acknowledged: number) => void = () => {},
): Promise<UploadRun> {
  return new Promise((resolve, reject) => {
    let startedAt: number | undefined;
    let acknowledged = 0;
    const upload = new Upload(createReadStream(path), {
      uploadUrl,
      uploadSize: sizeBytes,
      chunkSize: chunkBytes,
      retryDelays: null,
      onProgress: (sent) => onProgress(sent, acknowledged),
      onChunkComplete: (_size, accepted) => {
        acknowledged = accepted;
      },
      onAfterResponse: (_request, response) => {
        const offset = Number(response.getHeader("Upload-Offset"));
        if (startedAt === undefined) startedAt = acknowledged = offset;
      },
      onSuccess: () => resolve({ startedAt: startedAt ?? 0, acknowledged: sizeBytes, finished: true }),
      onError: (error) => {
        const answer = (error as Partial<DetailedError>).originalResponse;
        if (answer) reject(error);
        else resolve({ startedAt: startedAt ?? 0, acknowledged, finished: false });
      },
    });
    upload.start();
  });
}
