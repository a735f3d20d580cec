/** How much an archive may turn into. */
import { refused, tooLarge } from "./refusal.ts";

export interface ExtractLimits {
  /** Entries, folders included. */
  readonly maxEntries: number;
  readonly maxTotalBytes: number;
  readonly maxFileBytes: number;
  /** Bytes out of one byte of the archive; judged only above `ratioFromBytes`, since small files of zeros are no bombs. */
  readonly maxRatio: number;
  readonly ratioFromBytes: number;
}

/** Counts entries and announced bytes, and refuses the one that is too many. */
export class ExtractTally {
  entries = 0;
  files = 0;
  bytes = 0;
  readonly #limits: ExtractLimits;

  constructor(limits: ExtractLimits) {
    this.#limits = limits;
  }

  addEntry(): void {
    this.entries += 1;
    if (this.entries > this.#limits.maxEntries)
      throw tooLarge(`it has more than ${this.#limits.maxEntries} entries`);
  }

  addFile(bytes: number): void {
    const { maxFileBytes, maxTotalBytes } = this.#limits;
    this.files += 1;
    this.bytes += bytes;
    if (bytes > maxFileBytes) throw tooLarge(`a file in it has more than ${maxFileBytes} bytes`);
    if (this.bytes > maxTotalBytes)
      throw tooLarge(`its files have more than ${maxTotalBytes} bytes together`);
  }
}

export function checkRatio(
  bytesOut: number,
  bytesIn: number,
  { maxRatio, ratioFromBytes }: ExtractLimits,
): void {
  if (bytesOut <= ratioFromBytes || bytesOut <= maxRatio * bytesIn) return;
  throw refused(
    `it unpacks to more than ${maxRatio} times its size, as archives do that are made to fill disks`,
  );
}
