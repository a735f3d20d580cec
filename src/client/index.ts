/** `longshore/client` in Node: what it has in a browser, and files by their path. */
import { createHash } from "node:crypto";
import { byteSource, type UploadSource } from "./byte-source.ts";
import type { Platform } from "./digest.ts";
import {
  type Downloaded,
  type DownloadOptions,
  downloadBlobWith,
  downloadWith,
  type WriteBytes,
} from "./download.ts";
import { withFileSource } from "./file-source.ts";
import { downloadInto, type ToFileOptions } from "./into-file.ts";
import { type Uploaded, type UploadOptions, uploadWith } from "./upload.ts";

export type { ErrorCode } from "../errors.ts";
export type { UploadSource } from "./byte-source.ts";
export { createUpload, type NewUpload } from "./create-upload.ts";
export type { Downloaded, DownloadOptions, WriteBytes } from "./download.ts";
export type { ToFileOptions } from "./into-file.ts";
export type { RetryOptions } from "./retry.ts";
export { type FailureCode, TransferFailure } from "./transfer-failure.ts";
export type { Progress, Uploaded, UploadOptions } from "./upload.ts";

const platform: Platform = {
  newSha256() {
    const hash = createHash("sha256");
    return { update: (bytes) => void hash.update(bytes), digest: () => hash.digest("hex") };
  },
};

/**
 * Sends bytes to an upload URL, from the offset that it has reached, and compares the digests in the end. Goes on by itself after a lost
 * connection; the same call after an error, or tomorrow, goes on from there too.
 *
 * @throws TransferFailure
 * @example
 * await upload(url, createReadStream("data.csv").pipe(createGzip()));
 */
export function upload(
  url: string | URL,
  source: UploadSource,
  options: UploadOptions = {},
): Promise<Uploaded> {
  return uploadWith(platform, url, byteSource(source), options);
}

/**
 * `upload` of a file by its path.
 *
 * @throws TransferFailure, and the error of `node:fs` where the file cannot be read.
 * @example
 * const { handle, size, sha256 } = await uploadFile(url, "/data/big.bin");
 */
export function uploadFile(url: string | URL, path: string, options: UploadOptions = {}): Promise<Uploaded> {
  return withFileSource(path, (source) => uploadWith(platform, url, source, options));
}

/**
 * Fetches a file from a download URL, piece by piece, and compares the digest in the end. Goes on by itself after a lost connection.
 *
 * @throws TransferFailure
 * @example
 * const out = createWriteStream("big.bin");
 * await download(url, async (bytes) => { if (!out.write(bytes)) await once(out, "drain"); });
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
 */
export function downloadBlob(
  url: string | URL,
  options: DownloadOptions = {},
): Promise<Downloaded & { readonly blob: Blob }> {
  return downloadBlobWith(platform, url, options);
}

/**
 * Fetches a file to a path. While it is not whole it is at `path` + `.part`; a later call goes on with that. It is renamed once its digest
 * was right.
 *
 * @throws TransferFailure, and the error of `node:fs` where the file cannot be written.
 * @example
 * const { size, sha256 } = await downloadFile(url, "/data/big.bin");
 */
export function downloadFile(
  url: string | URL,
  path: string,
  options: ToFileOptions = {},
): Promise<Downloaded> {
  return downloadInto(platform, url, path, options);
}
