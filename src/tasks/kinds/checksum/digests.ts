/** Several digests of the same bytes at once. */
import { createHash } from "node:crypto";
import { createBLAKE3, createCRC32 } from "hash-wasm";

export const digestAlgorithms = ["sha256", "sha1", "md5", "crc32c", "blake3"] as const;

export type DigestAlgorithm = (typeof digestAlgorithms)[number];

interface Digest {
  update(piece: Uint8Array): unknown;
  digest(encoding: "hex"): string;
}

/** Castagnoli's polynomial, reversed (RFC 3720 appendix B.4). */
const castagnoli = 0x82f63b78;

export class Digests {
  readonly #running: ReadonlyMap<DigestAlgorithm, Digest>;

  private constructor(running: ReadonlyMap<DigestAlgorithm, Digest>) {
    this.#running = running;
  }

  static async of(algorithms: readonly DigestAlgorithm[]): Promise<Digests> {
    const running = new Map<DigestAlgorithm, Digest>();
    for (const algorithm of algorithms) running.set(algorithm, await digestOf(algorithm));
    return new Digests(running);
  }

  update(piece: Uint8Array): void {
    for (const digest of this.#running.values()) digest.update(piece);
  }

  /** Lower-case hex of each. */
  hex(): Record<string, string> {
    return Object.fromEntries(
      [...this.#running].map(([algorithm, digest]) => [algorithm, digest.digest("hex")]),
    );
  }
}

async function digestOf(algorithm: DigestAlgorithm): Promise<Digest> {
  if (algorithm === "blake3") return (await createBLAKE3()).init();
  if (algorithm === "crc32c") return (await createCRC32(castagnoli)).init();
  return createHash(algorithm);
}
