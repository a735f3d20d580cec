/**
 * Files that were read a moment ago stay open for another: a client that reads a large file in ranges opens the same one thousands
 * of times, and each opening and closing costs more than the read between them.
 *
 * Promises: at most 64 files are open that nobody reads, each for a fraction of a second; a file that this process removes is let go of
 * at once, one that another process removes keeps its room on the disk for that moment.
 */
import fs from "node:fs";
import { promisify } from "node:util";

const openFile = promisify(fs.open);
const closeFile = promisify(fs.close);

const maxIdle = 64;
const defaultIdleMs = 100;

interface KeptFile {
  readonly fd: number;
  readers: number;
  idleSince: number;
  /** Removed meanwhile, or the store is closed: whoever closes last lets go of the file. */
  forgotten: boolean;
}

export interface ReadableFile {
  readonly fd: number;
  /** To be called once. */
  close(): Promise<void>;
}

function isOutOfDescriptors(cause: unknown): boolean {
  const { code } = cause as NodeJS.ErrnoException;
  return code === "EMFILE" || code === "ENFILE";
}

export class KeptFiles {
  readonly #opening = new Map<string, Promise<KeptFile>>();
  /** Those that are open, by path; those that nobody reads in the order in which they fell idle. */
  readonly #inUse = new Map<string, KeptFile>();
  readonly #idle = new Map<string, KeptFile>();
  readonly #idleMs: number;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  /** `idleMs`: a file that nobody reads is let go of after once to twice as long. */
  constructor({ idleMs = defaultIdleMs }: { idleMs?: number } = {}) {
    this.#idleMs = idleMs;
  }

  /** Rejects with the fault of the file system. */
  async open(file: string): Promise<ReadableFile> {
    for (;;) {
      const known = this.#inUse.get(file) ?? this.#idle.get(file);
      if (known !== undefined) return this.#lend(file, known);
      const opening = this.#opening.get(file);
      // Whoever opens it takes it in the same turn in which it is known; the others find it then, or open it anew.
      if (opening !== undefined) await opening;
      else return this.#lend(file, await this.#open(file));
    }
  }

  /** Opens something; where descriptors have run out, once more without those that nobody reads. */
  async withDescriptors<T>(open: () => Promise<T>): Promise<T> {
    try {
      return await open();
    } catch (cause) {
      if (!isOutOfDescriptors(cause) || this.#idle.size === 0) throw cause;
      await this.#letGo([...this.#idle.keys()]);
      return open();
    }
  }

  /** To be called once the file is removed. */
  async forget(file: string): Promise<void> {
    const opening = this.#opening.get(file);
    if (opening !== undefined) await opening.catch(() => {});
    const inUse = this.#inUse.get(file);
    if (inUse !== undefined) inUse.forgotten = true;
    this.#inUse.delete(file);
    const idle = this.#idle.get(file);
    this.#idle.delete(file);
    if (idle !== undefined) await closeFile(idle.fd);
  }

  /** Files that are being read stay open until their readers close them. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    await Promise.all([...this.#opening.values()].map((opening) => opening.catch(() => {})));
    await this.#letGo([...this.#idle.keys()]);
  }

  async #open(file: string): Promise<KeptFile> {
    const opening = this.withDescriptors(() => openFile(file, "r")).then((fd) => ({
      fd,
      readers: 0,
      idleSince: 0,
      forgotten: false,
    }));
    this.#opening.set(file, opening);
    try {
      const opened = await opening;
      this.#inUse.set(file, opened);
      return opened;
    } finally {
      this.#opening.delete(file);
    }
  }

  #lend(file: string, kept: KeptFile): ReadableFile {
    kept.readers += 1;
    if (this.#idle.delete(file)) this.#inUse.set(file, kept);
    return { fd: kept.fd, close: () => this.#giveBack(file, kept) };
  }

  async #giveBack(file: string, kept: KeptFile): Promise<void> {
    kept.readers -= 1;
    if (kept.readers > 0) return;
    if (kept.forgotten || this.#closed) {
      if (!kept.forgotten) this.#inUse.delete(file);
      await closeFile(kept.fd);
      return;
    }
    kept.idleSince = performance.now();
    this.#inUse.delete(file);
    this.#idle.set(file, kept);
    this.#timer ??= setInterval(() => this.#tidy(), this.#idleMs).unref();
    const [oldest] = this.#idle.keys();
    if (this.#idle.size > maxIdle && oldest !== undefined) await this.#letGo([oldest]);
  }

  #tidy(): void {
    const before = performance.now() - this.#idleMs;
    const due = [...this.#idle].filter(([, { idleSince }]) => idleSince <= before).map(([file]) => file);
    void this.#letGo(due);
    if (this.#idle.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Never rejects: nothing is lost with a file that was only read. */
  async #letGo(files: readonly string[]): Promise<void> {
    const fds = files.map((file) => this.#idle.get(file)?.fd);
    for (const file of files) this.#idle.delete(file);
    await Promise.all(fds.map((fd) => fd !== undefined && closeFile(fd).catch(() => {})));
  }
}
