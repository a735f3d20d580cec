/** Names inside an archive: safe to extract anywhere, and each of its own. */
import { shortened } from "../plain-name.ts";

/** In the order given; what would have a name for the second time gets a number. */
export function entryNames(filenames: readonly string[]): string[] {
  const taken = new Set<string>();
  return filenames.map((filename) => {
    const safe = safeName(filename);
    let name = safe;
    for (let number = 2; taken.has(keyOf(name)); number += 1) name = withNumber(safe, number);
    taken.add(keyOf(name));
    return name;
  });
}

/** No folders, no drive letter, nothing that a shell or a file system takes for something else. */
function safeName(filename: string): string {
  const name = shortened(
    filename
      .toWellFormed()
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
      .replace(/[\u0000-\u001f\u007f/\\]/g, "_")
      .replace(/^([A-Za-z]):/, "$1_"),
  ).toWellFormed();
  return /^\.*$/.test(name) ? `_${name.slice(1)}` : name;
}

function withNumber(name: string, number: number): string {
  const suffix = ` (${number})`;
  const short = shortened(name, suffix.length);
  const [, stem = short, extension = ""] = /^(.+?)((?:\.tar)?\.[^.]{1,20})$/.exec(short) ?? [];
  return `${stem}${suffix}${extension}`;
}

/** Some file systems take these for one name: capital and small letters, and one letter composed in two ways. */
function keyOf(name: string): string {
  return name.normalize("NFC").toLowerCase();
}
