/** What an extraction tells: the first files in the result, all of them in a stored file where there are more. */
import type { StoredFile } from "../stored-step.ts";

export type ExtractedFile = {
  readonly path: string;
  readonly handle: string;
  readonly size: number;
  readonly sha256: string;
};

/** A model reads the result, and digests and handles cost it much; what is beyond stands in the manifest. */
const maxListed = 40;
const maxListedBytes = 12_000;

export function listed(files: readonly ExtractedFile[]): ExtractedFile[] {
  const rows: ExtractedFile[] = [];
  let bytes = 0;
  for (const file of files.slice(0, maxListed)) {
    bytes += Buffer.byteLength(JSON.stringify(file));
    if (bytes > maxListedBytes) break;
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
