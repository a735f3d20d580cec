/**
 * A disk whose power can be cut: an ext4 file system over a block device that keeps what it is told in a cache until it is told to
 * flush, as real disks do. Needs the right to mount.
 *
 * Two loop devices stand on each other. The lower one's file is the medium, the page cache between them is the disk's cache, and the
 * upper one carries the file system: what is written stays in the file system's own cache until somebody syncs, then in the disk's until
 * the flush that a sync ends with, and only then is it in the file. A copy of the file is the disk as it would be found after the cut.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { waitUntil } from "./wait-until.ts";

export interface CutDisk {
  /** Where it is mounted. */
  readonly path: string;
  /**
   * The power goes now: what is on the medium, as a disk of its own, mounted (so its journal is replayed). Nobody may be writing:
   * stop the process first. The disk itself goes on as if nothing had been.
   */
  cut(): Promise<{ readonly path: string }>;
  /** Takes everything down; whoever has files open there must have ended. */
  remove(): void;
}

const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { stdio: ["ignore", "pipe", "pipe"], encoding: "utf8" }).trim();

/** Steps that undo, done in reverse order; each as far as it goes. */
class Undo {
  readonly #steps: (() => void)[] = [];
  readonly #atExit = (): void => this.all();

  constructor() {
    process.on("exit", this.#atExit);
  }

  push(step: () => void): void {
    this.#steps.push(step);
  }

  all(): void {
    process.off("exit", this.#atExit);
    const faults: unknown[] = [];
    for (const step of this.#steps.splice(0).reverse()) {
      try {
        step();
      } catch (fault) {
        faults.push(fault);
      }
    }
    if (faults.length > 0) throw new AggregateError(faults, "the disk could not be taken down");
  }
}

/** The disk, or why there can be none. */
export function cutDisk(mebibytes = 256): CutDisk | { readonly why: string } {
  const undo = new Undo();
  try {
    const folder = mkdtempSync(path.join(os.tmpdir(), "longshore-cut-"));
    undo.push(() => rmSync(folder, { recursive: true, force: true }));
    const at = (name: string): string => {
      mkdirSync(path.join(folder, name));
      return path.join(folder, name);
    };
    const mounted = (target: string, ...args: string[]): string => {
      run("mount", ...args, target);
      undo.push(() => unmount(target));
      return target;
    };
    const looped = (file: string): string => {
      const device = run("losetup", "--find", "--show", file);
      undo.push(() => run("losetup", "--detach", device));
      return device;
    };
    const media = mounted(at("media"), "-t", "tmpfs", "-o", "size=2g,mode=0700", "tmpfs");
    const medium = path.join(media, "medium");
    run("truncate", "--size", `${mebibytes}M`, medium);
    const lower = looped(medium);
    const upper = looped(lower);
    const options = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";
    run("mkfs.ext4", "-q", "-b", "4096", "-m", "0", "-E", options, upper);
    // No commit of its own accord: a sync that is missing is to be missed.
    const disk = mounted(at("disk"), "-o", "noatime,commit=600", upper);
    let copies = 0;
    return {
      path: disk,
      async cut() {
        copies += 1;
        const copy = path.join(media, `copy-${copies}`);
        await waitUntil(() => {
          const before = writesOf(lower);
          run("cp", "--sparse=always", medium, copy);
          // Written to meanwhile, the copy is of no one moment.
          return before !== null && writesOf(lower) === before;
        });
        return { path: mounted(at(`found-${copies}`), "-o", "noatime", looped(copy)) };
      },
      remove: () => undo.all(),
    };
  } catch (error) {
    try {
      undo.all();
    } catch {
      // The first fault says more.
    }
    const said = (error as { stderr?: string }).stderr ?? String(error);
    return { why: `a file system in a file cannot be mounted here (${said.trim()})` };
  }
}

/** Writes that the device has completed, or null while one is under way. https://docs.kernel.org/block/stat.html */
function writesOf(device: string): string | null {
  const fields = readFileSync(`/sys/block/${path.basename(device)}/stat`, "utf8")
    .trim()
    .split(/\s+/);
  return fields[8] === "0" ? `${fields[4]} ${fields[6]} ${fields[11]}` : null;
}

function unmount(target: string): void {
  try {
    run("umount", target);
  } catch {
    // Still in use by somebody who is ending.
    run("umount", "--lazy", target);
  }
}
