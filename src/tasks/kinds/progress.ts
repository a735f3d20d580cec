/** Progress in bytes, told no more often than anybody looks. */
import type { TaskContext } from "../engine.ts";

const everyMs = 500;

export class ByteProgress {
  readonly #context: TaskContext;
  readonly #verb: string;
  readonly #totalBytes: number | null;
  #bytes = 0;
  #toldAt = Number.NEGATIVE_INFINITY;

  /** `verb`: what is done with the bytes, as in "Fetched 3 MiB of 10 MiB". */
  constructor(context: TaskContext, verb: string, totalBytes: number | null) {
    this.#context = context;
    this.#verb = verb;
    this.#totalBytes = totalBytes;
  }

  add(bytes: number): void {
    this.reach(this.#bytes + bytes);
  }

  reach(bytes: number): void {
    this.#bytes = bytes;
    const now = performance.now();
    if (now - this.#toldAt < everyMs) return;
    this.#toldAt = now;
    const total = this.#totalBytes;
    const message = `${this.#verb} ${sizeText(bytes)}${total === null ? "" : ` of ${sizeText(total)}`}`;
    report(this.#context, message, total === null || total === 0 ? undefined : Math.min(1, bytes / total));
  }
}

/** Work goes on whether or not this can be told. */
export function report(context: TaskContext, message: string, fraction?: number): void {
  context.progress(message, fraction).catch(() => {});
}

const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];

export function sizeText(bytes: number): string {
  const power = bytes < 1024 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** power;
  return `${power === 0 ? value : value.toFixed(1)} ${units[power]}`;
}
