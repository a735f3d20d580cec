/** Reads the project's own pages, so that tests can hold them to what the code does. */
import { readFileSync } from "node:fs";

const root = new URL("../../", import.meta.url);

/** @param path from the root of the repository. */
export function page(path: string): string {
  return readFileSync(new URL(path, root), "utf8");
}

/** The part under a heading, up to the next heading of the same or a higher level. */
export function section(markdown: string, heading: string): string {
  const lines = markdown.split("\n");
  const start = lines.indexOf(heading);
  if (start === -1) throw new Error(`There is no heading "${heading}".`);
  const level = heading.indexOf(" ");
  const length = lines.slice(start + 1).findIndex((line) => /^#+ /.test(line) && line.indexOf(" ") <= level);
  return lines.slice(start + 1, length === -1 ? undefined : start + 1 + length).join("\n");
}

/** Cells of all table rows but the head; code marks are taken off. */
export function rows(markdown: string): string[][] {
  const lines = markdown.split("\n");
  return lines
    .filter(
      (line, at) =>
        line.startsWith("|") && !/^\|[-|]+\|$/.test(line) && !/^\|[-|]+\|$/.test(lines[at + 1] ?? ""),
    )
    .map((line) =>
      line
        .slice(1, -1)
        .split("|")
        .map((cell) => cell.trim().replace(/^`([^`]*)`$/, "$1")),
    );
}

/** Texts of the fenced blocks of one language, in order. */
export function codeBlocks(markdown: string, language: string): string[] {
  const fences = markdown.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm);
  return [...fences].filter(([, tag]) => tag === language).map(([, , text]) => text ?? "");
}
