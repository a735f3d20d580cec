/**
 * `longshore put FILE [URL]`: sends a file and compares the digests. To the URL of an upload it goes on from where an earlier try has ended;
 * to a server it is a new upload, since nothing is kept here.
 */
import { stat } from "node:fs/promises";
import path from "node:path";
import { createUpload, uploadFile } from "../client/index.ts";
import { CommandError } from "./command-context.ts";
import { canGoOn } from "./going-on.ts";
import { createProgressBar } from "./progress-bar.ts";
import type { RunRemote } from "./remote-context.ts";

export interface PutArguments {
  readonly file: string;
  /** An upload URL, or a server's base URL; left out, the server's of LONGSHORE_URL. */
  readonly url?: string | undefined;
}

export const put: RunRemote<PutArguments> = async (context, { file, url = context.url }) => {
  const { key, json, print, note, signal } = context;
  if (!URL.canParse(url)) throw new CommandError(`"${url}" is no URL.`);
  const { size } = await fileAt(file);
  const target = isUploadUrl(url)
    ? url
    : await createUpload(url, {
        filename: path.basename(file),
        sizeBytes: size,
        signal,
        // Where no server is there, nothing is lost by saying so soon.
        attempts: 3,
        ...(key !== null && { key }),
      });
  const bar = createProgressBar();
  try {
    const stored = await uploadFile(target, file, {
      signal,
      onProgress: (progress) => bar.show(progress),
      onRetry: (failure) => bar.say(failure.message),
    });
    bar.end();
    print(json ? JSON.stringify(stored) : `${stored.handle}  ${stored.size} bytes  sha256 ${stored.sha256}`);
    return 0;
  } catch (error) {
    bar.end();
    // The URL is all that is needed to go on, and nobody else has it.
    if (canGoOn(error, signal))
      note(`To go on where this ended: longshore put ${shellQuoted(file)} ${target}`);
    throw error;
  }
};

async function fileAt(file: string): Promise<{ size: number }> {
  const found = await stat(file).catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(
      error.code === "ENOENT" ? `There is no file ${file}.` : `${file} cannot be read: ${error.message}.`,
    );
  });
  if (found.isDirectory()) throw new CommandError(`${file} is a folder. Make an archive of it first.`);
  if (!found.isFile())
    throw new CommandError(`${file} is a pipe or a device. Write what comes out of it to a file first.`);
  return found;
}

/** Upload URLs have a ticket behind `/files/`; a server's base URL has nothing there. */
function isUploadUrl(url: string): boolean {
  return /\/files\/[^/]+/.test(new URL(url).pathname);
}

function shellQuoted(word: string): string {
  return /^[A-Za-z0-9_./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
