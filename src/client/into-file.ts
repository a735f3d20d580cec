/** Downloads to a path, which holds whole files only. Node alone. */
import { createReadStream } from "node:fs";
import { type FileHandle, open, rename, truncate, unlink } from "node:fs/promises";
import type { Platform } from "./digest.ts";
import { type Beginning, type Downloaded, type DownloadOptions, downloadWith } from "./download.ts";
import { TransferFailure } from "./transfer-failure.ts";

/**
 * What {@link downloadFile} goes by.
 *
 * @example
 * const options: ToFileOptions = { fresh: true };
 */
export interface ToFileOptions extends DownloadOptions {
  /** Starts anew instead of going on with what an earlier call has left. */
  readonly fresh?: boolean;
}

export async function downloadInto(
  platform: Platform,
  url: string | URL,
  path: string,
  options: ToFileOptions,
): Promise<Downloaded> {
  const part = `${path}.part`;
  const { file, isNew } = await openPart(part, options.fresh === true);
  try {
    const { size } = await file.stat();
    const fetchFrom = (beginning: Beginning | null): Promise<Downloaded> =>
      downloadWith(platform, url, async (bytes) => writeAll(file, bytes), options, beginning);
    const downloaded = await fetchFrom(size === 0 ? null : beginningAt(part, size)).catch(
      async (error: unknown) => {
        // What was left is of another file: it is worth nothing.
        if (size === 0 || !isOtherFile(error)) throw error;
        await truncate(part, 0);
        return fetchFrom(null);
      },
    );
    // The name says that the file is whole, so its bytes are on the disk before it.
    await file.sync();
    await rename(part, path);
    return downloaded;
  } catch (error) {
    // Nothing has come: there is nothing to go on with.
    if (isNew && (await file.stat()).size === 0) await unlink(part).catch(() => {});
    throw error;
  } finally {
    await file.close();
  }
}

async function openPart(part: string, fresh: boolean): Promise<{ file: FileHandle; isNew: boolean }> {
  try {
    return { file: await open(part, "ax"), isNew: true };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return { file: await open(part, fresh ? "w" : "a"), isNew: false };
  }
}

function isOtherFile(error: unknown): boolean {
  return (
    error instanceof TransferFailure &&
    (error.code === "precondition_failed" || error.code === "checksum_mismatch")
  );
}

function beginningAt(part: string, sizeBytes: number): Beginning {
  return { sizeBytes, pieces: () => createReadStream(part, { end: sizeBytes - 1, highWaterMark: 2 ** 20 }) };
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten;
}
