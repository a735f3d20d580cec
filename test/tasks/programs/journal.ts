/** What workers have noted in the file that they all append to: a line for each thing done, its words apart. */
import { existsSync, readFileSync } from "node:fs";

export function linesOf(journal: string): string[][] {
  if (!existsSync(journal)) return [];
  return readFileSync(journal, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.split(" "));
}

export const timesRun = (journal: string, name: string): number =>
  linesOf(journal).filter(([first]) => first === name).length;

/** Whether this process has noted it. */
export const hasNoted = (journal: string, what: string, pid: number): boolean =>
  linesOf(journal).some(([first, by]) => first === what && by === String(pid));
