/** What an extraction tells: the first files in the result, all of them in a stored file where there are more. */
import type { StoredFile } from "../stored-step.ts";

export type ExtractedFile = {
  readonly path: string;
  readonly handle: string;
  readonly size: number;
  readonly sha256: string;
};

/** A model reads the result: what is beyond it finds in the manifest. */
const maxListed = 50;
const maxListedLength = 16_384;

export function listed(files: readonly ExtractedFile[]): ExtractedFile[] {
  const rows: ExtractedFile[] = [];
  let length = 0;
  for (const file of files.slice(0, maxListed)) {
    length += JSON.stringify(file).length;
    if (length > maxListedLength) break;
    rows.push(file);
  }
  return rows;
}

/** One file a line, so that it can be read in windows. */
export function manifestText(files: readonly ExtractedFile[]): string {
  return files.map((file) => `${JSON.stringify(file)}\n`).join("");
}

export function extracted(path: string, { handle, size, sha256 }: StoredFile): ExtractedFile {
  return { path, handle, size, sha256 };
}
