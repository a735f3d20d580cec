/** `longshore/client` in a browser: nothing of Node. */
import { createSHA256 } from "hash-wasm";
import { byteSource, type UploadSource } from "./byte-source.ts";
import type { Platform } from "./digest.ts";
import {
  type Downloaded,
  type DownloadOptions,
  downloadBlobWith,
  downloadWith,
  type WriteBytes,
} from "./download.ts";
import { type Uploaded, type UploadOptions, uploadWith } from "./upload.ts";

export type { ErrorCode } from "../errors.ts";
export type { UploadSource } from "./byte-source.ts";
export { createUpload, type NewUpload } from "./create-upload.ts";
export type { Downloaded, DownloadOptions, WriteBytes } from "./download.ts";
export type { RetryOptions } from "./retry.ts";
export { type FailureCode, TransferFailure } from "./transfer-failure.ts";
export type { Progress, Uploaded, UploadOptions } from "./upload.ts";

// The browser's own digest takes a whole file at once only.
const platform: Platform = { newSha256: async () => (await createSHA256()).init() };

/**
 * Sends a file to an upload URL, from the offset that it has reached, and compares the digests in the end. Goes on by itself after a lost
 * connection; the same call after an error, or tomorrow, goes on from there too.
 *
 * @throws TransferFailure
 * @example
 * const { handle, sha256 } = await upload(url, input.files[0], {
 *   onProgress: ({ bytes, sizeBytes }) => (bar.value = bytes / sizeBytes),
 *   signal: controller.signal,
 * });
 */
export function upload(
  url: string | URL,
  source: UploadSource,
  options: UploadOptions = {},
): Promise<Uploaded> {
  return uploadWith(platform, url, byteSource(source), options);
}

/**
 * Fetches a file from a download URL, piece by piece, and compares the digest in the end. Goes on by itself after a lost connection.
 *
 * @throws TransferFailure
 * @example
 * const writable = await fileHandle.createWritable();
 * await download(url, (bytes) => writable.write(bytes));
 * await writable.close();
 */
export function download(
  url: string | URL,
  write: WriteBytes,
  options: DownloadOptions = {},
): Promise<Downloaded> {
  return downloadWith(platform, url, write, options);
}

/**
 * Fetches a file into memory, for files that fit there.
 *
 * @throws TransferFailure
 * @example
 * const { blob } = await downloadBlob(url);
 * image.src = URL.createObjectURL(blob);
 */
export function downloadBlob(
  url: string | URL,
  options: DownloadOptions = {},
): Promise<Downloaded & { readonly blob: Blob }> {
  return downloadBlobWith(platform, url, options);
}
