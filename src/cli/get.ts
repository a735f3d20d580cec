/** `longshore get URL [FILE]`: fetches a file, from where an earlier try has ended, and compares the digest. */
import { stat } from "node:fs/promises";
import { downloadFile } from "../client/index.ts";
import { CommandError } from "./command-context.ts";
import { canGoOn } from "./going-on.ts";
import { createProgressBar } from "./progress-bar.ts";
import type { RunRemote } from "./remote-context.ts";

export interface GetArguments {
  readonly url: string;
  /** Left out, the name at the end of the URL. */
  readonly file?: string | undefined;
  readonly force: boolean;
}

export const get: RunRemote<GetArguments> = async ({ json, print, note, signal }, given) => {
  const { url, force } = given;
  if (!URL.canParse(url)) throw new CommandError(`"${url}" is no URL.`);
  const file = given.file ?? nameIn(url);
  if (!force && (await exists(file)))
    throw new CommandError(`${file} exists already. Name another file, or replace it with --force.`);
  const bar = createProgressBar();
  try {
    const { size, sha256 } = await downloadFile(url, file, {
      signal,
      onProgress: (progress) => bar.show(progress),
      onRetry: (failure) => bar.say(failure.message),
    });
    bar.end();
    print(json ? JSON.stringify({ file, size, sha256 }) : `${file}  ${size} bytes  sha256 ${sha256}`);
    return 0;
  } catch (error) {
    bar.end();
    if (!json && canGoOn(error, signal) && (await hasBytes(`${file}.part`)))
      note(`What has come is in ${file}.part; the same command goes on from there.`);
    throw error;
  }
};

/** A plain name for the working folder, whatever the URL says. */
function nameIn(url: string): string {
  const last = new URL(url).pathname.split("/").at(-1) ?? "";
  let name = last;
  try {
    name = decodeURIComponent(last);
  } catch {
    // Not percent-encoded after all.
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is taken out here
  const plain = name.replaceAll(/[\u0000-\u001f\u007f/\\:]/g, "_").replace(/^[.-]+/, "_");
  if (plain === "")
    throw new CommandError("The URL has no file name in it. Name the file: longshore get URL FILE");
  return plain;
}

async function hasBytes(file: string): Promise<boolean> {
  return stat(file).then(
    ({ size }) => size > 0,
    () => false,
  );
}

async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}
