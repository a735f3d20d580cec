/** Paths inside an archive: what is not plainly a path below the folder of extraction is refused, never mended. */
import { quoted, refused } from "./refusal.ts";

const maxPathLength = 1_024;
const maxSegmentLength = 255;
const maxDepth = 32;

/**
 * The path without `.` segments and doubled slashes; empty for the archive's own folder.
 *
 * @throws TransferError
 */
export function entryPath(name: string): string {
  const refuse = (why: string): Error => refused(`the name ${quoted(name)} ${why}`);
  if (!name.isWellFormed() || name.includes("\ufffd")) throw refuse("is not Unicode");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
  if (/[\u0000-\u001f\u007f]/.test(name)) throw refuse("has a control character");
  if (name.includes("\\")) throw refuse("has a backslash");
  if (name.startsWith("/")) throw refuse("is an absolute path");
  if (/^[A-Za-z]:/.test(name)) throw refuse("has a drive letter");
  const segments = name.split("/").filter((segment) => segment !== "" && segment !== ".");
  if (segments.includes("..")) throw refuse("leads to a parent folder");
  if (segments.length > maxDepth) throw refuse(`is more than ${maxDepth} folders deep`);
  const path = segments.join("/");
  if (path.length > maxPathLength || segments.some(({ length }) => length > maxSegmentLength))
    throw refuse("is too long");
  return path;
}

/** Finds the second of one name. */
export class PathsSeen {
  readonly #seen = new Set<string>();

  add(path: string): void {
    const key = path.normalize("NFC");
    if (this.#seen.has(key)) throw refused(`it has two files named ${quoted(path)}`);
    this.#seen.add(key);
  }
}
