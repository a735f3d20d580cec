/**
 * Space that is held back so that something can still be deleted on a full disk: to delete is to write first. It is a file of zeros
 * in the data folder, given up for the moment of such a write; what that write did not need is taken back at once.
 *
 * It covers three things: what the database still has to grow by when its log is moved into it (kept below half of it), the commit
 * that goes beyond that (at most a quarter), and what a deletion writes.
 */
import { closeSync, fsyncSync, ftruncateSync, openSync, statfsSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";

const ballastBytes = 4 << 20;
/** On small disks it is this part of them. */
const diskShare = 16;
/** On a disk with less free space than this many of it, the ballast would itself be what fills it. */
const roomFactor = 4;
const lookEveryMs = 60_000;
const longestLoanMs = 1_000;

export class Ballast {
  readonly #path: string;
  readonly #dataDir: string;
  #wholeBytes = ballastBytes;
  #heldBytes = 0;
  #goneSince: number | null = null;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(dataDir: string) {
    this.#dataDir = dataDir;
    this.#path = join(dataDir, "ballast");
  }

  /** How much of it there is, or was a minute ago. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Makes it, or what is missing of it, where the disk has room. Looks once a minute at most, so it may be called at any time. */
  keep(): void {
    const now = performance.now();
    if (now - this.#lookedAt < lookEveryMs) return;
    this.#lookedAt = now;
    quietly(() => {
      const { blocks, bavail, bsize } = statfsSync(this.#dataDir);
      this.#wholeBytes = Math.min(ballastBytes, Math.ceil((blocks * bsize) / diskShare / 4096) * 4096);
      const held = statSync(this.#path, { throwIfNoEntry: false })?.size;
      this.#heldBytes = held ?? 0;
      // What is missing of one that is there was lost to a kill, or to others on a full disk: it comes first.
      const missing = this.#wholeBytes - this.#heldBytes;
      const needed = held === undefined ? roomFactor * missing : missing;
      if (missing > 0 && bavail * bsize >= needed) this.takeBack();
    });
  }

  /** Gives its space to whoever writes next. */
  drop(): void {
    quietly(() => {
      const file = openSync(this.#path, "r+");
      try {
        ftruncateSync(file, 0);
        // Journaling file systems hand the space out again only once they have noted that it is free.
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
    });
  }

  /** Whether another process has put it back that had it given up at the same time. */
  isTakenBack(): boolean {
    return (statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0) > 0;
  }

  /** Whether it is given up just now, by another process. One that has ended in that moment does not count for long. */
  isLent(): boolean {
    const isGone = statSync(this.#path, { throwIfNoEntry: false })?.size === 0;
    const now = performance.now();
    if (!isGone) this.#goneSince = null;
    else this.#goneSince ??= now;
    return this.#goneSince !== null && now - this.#goneSince < longestLoanMs;
  }

  /** Takes as much of its space as there is, up to all of it. */
  takeBack(): void {
    quietly(() => {
      const file = openSync(this.#path, "a", 0o600);
      try {
        const zeros = Buffer.alloc(64 << 10);
        this.#heldBytes = statSync(this.#path).size;
        while (this.#heldBytes < this.#wholeBytes)
          this.#heldBytes += writeSync(
            file,
            zeros,
            0,
            Math.min(zeros.byteLength, this.#wholeBytes - this.#heldBytes),
          );
      } finally {
        closeSync(file);
      }
    });
  }

  /** What the disk has free; 0 where it does not say. */
  freeBytes(): number {
    let free = 0;
    quietly(() => {
      const { bavail, bsize } = statfsSync(this.#dataDir);
      free = bavail * bsize;
    });
    return free;
  }
}

/** Without its ballast a store works as well, until the disk is full: nothing fails for it. */
function quietly(work: () => void): void {
  try {
    work();
  } catch {
    // A disk that is full again, a folder that may only be read.
  }
}
