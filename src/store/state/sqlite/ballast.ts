/**
 * Space that is held back so that something can still be deleted on a full disk: to delete is to write first. It is a file of zeros
 * in the data folder, given up for the moment of such a write; what that write did not need is taken back at once.
 */
import { closeSync, fsyncSync, ftruncateSync, openSync, statfsSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";

const ballastBytes = 1 << 20;
/** On a disk with less free space than this the ballast would itself be what fills it. */
const roomBytes = 4 * ballastBytes;
const lookEveryMs = 60_000;

export class Ballast {
  readonly #path: string;
  readonly #dataDir: string;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(dataDir: string) {
    this.#dataDir = dataDir;
    this.#path = join(dataDir, "ballast");
  }

  /** Makes it, or what is missing of it, where the disk has room. Looks once a minute at most, so it may be called at any time. */
  keep(): void {
    const now = performance.now();
    if (now - this.#lookedAt < lookEveryMs) return;
    this.#lookedAt = now;
    quietly(() => {
      const heldBytes = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
      if (heldBytes >= ballastBytes) return;
      const { bavail, bsize } = statfsSync(this.#dataDir);
      if (bavail * bsize >= roomBytes) this.takeBack();
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

  /** Takes as much of its space as there is, up to all of it. */
  takeBack(): void {
    quietly(() => {
      const file = openSync(this.#path, "a", 0o600);
      try {
        const zeros = Buffer.alloc(64 << 10);
        let heldBytes = statSync(this.#path).size;
        while (heldBytes < ballastBytes)
          heldBytes += writeSync(file, zeros, 0, Math.min(zeros.byteLength, ballastBytes - heldBytes));
      } finally {
        closeSync(file);
      }
    });
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
