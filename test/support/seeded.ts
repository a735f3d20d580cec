/** Chance that can be repeated: the seed is told where a test fails, and `LONGSHORE_TEST_SEED` sets it. */
import { onTestFailed } from "vitest";

export class Seeded {
  readonly seed: number;
  #state: number;

  constructor(seed: number) {
    this.seed = seed;
    this.#state = seed >>> 0;
  }

  /** From 0 on, below 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** A whole number from `low` on, below `high`. */
  between(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low));
  }

  pick<T>(list: readonly T[]): T {
    const chosen = list[this.between(0, list.length)];
    if (chosen === undefined) throw new Error("there is nothing to pick from");
    return chosen;
  }

  bytes(count: number): Buffer {
    return Buffer.from(Uint8Array.from({ length: count }, () => this.between(0, 256)));
  }
}

/** For the running test; each run takes other chances unless the seed is given. */
export function seeded(): Seeded {
  const given = process.env.LONGSHORE_TEST_SEED;
  const seed = given === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(given);
  onTestFailed(() => console.error(`Repeat it with LONGSHORE_TEST_SEED=${seed}`));
  return new Seeded(seed);
}
