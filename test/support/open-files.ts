/** Files that this process has open; only Linux tells. */
import { existsSync, readdirSync, readlinkSync } from "node:fs";

export const tellsOpenFiles = existsSync("/proc/self/fd");

/** How many descriptors of this process are of files below the folder (or of the file itself), removed ones included. */
export function openBelow(path: string, counts: (file: string) => boolean = () => true): number {
  return readdirSync("/proc/self/fd").filter((fd) => {
    try {
      const file = readlinkSync(`/proc/self/fd/${fd}`);
      return file.startsWith(path) && counts(file);
    } catch {
      return false;
    }
  }).length;
}
