/** A file system of a few MiB in memory, for full disks. Needs the right to mount. */
import { execFileSync } from "node:child_process";
import { closeSync, ftruncateSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import os from "node:os";
import path from "node:path";

export interface SmallDisk {
  readonly path: string;
  /** Takes space until only about `leftBytes` are free, in a file beside the data folder. */
  fill(leftBytes: number): void;
  /** Gives all of that back. */
  free(): void;
  unmount(): void;
}

/** The disk, or why there can be none. */
export function smallDisk(mebibytes: number): SmallDisk | { readonly why: string } {
  const folder = mkdtempSync(path.join(os.tmpdir(), "longshore-disk-"));
  const mount = path.join(folder, "disk");
  mkdirSync(mount);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${mebibytes}m,mode=0700`, "tmpfs", mount], {
      stdio: "pipe",
    });
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    return {
      why: `a tmpfs cannot be mounted here (${String((error as { stderr?: Buffer }).stderr).trim()})`,
    };
  }
  const filler = path.join(mount, "filler");
  return {
    path: mount,
    fill(leftBytes) {
      const piece = Buffer.alloc(4096, 1);
      const file = openSync(filler, "a");
      let taken = 0;
      try {
        for (;;) taken += writeSync(file, piece);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
        ftruncateSync(file, Math.max(0, taken - leftBytes));
      } finally {
        closeSync(file);
      }
    },
    free: () => rmSync(filler, { force: true }),
    unmount() {
      execFileSync("umount", ["-l", mount]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
