/** Several digests of the same bytes at once. */
import { createHash } from "node:crypto";
import { createBLAKE3 } from "hash-wasm";
import { Crc32c } from "../../../integrity/crc32c.ts";

export const digestAlgorithms = ["sha256", "sha1", "md5", "crc32c", "blake3"] as const;

export type DigestAlgorithm = (typeof digestAlgorithms)[number];

interface Digest {
  update(piece: Uint8Array): unknown;
  hex(): string;
}

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
    return Object.fromEntries([...this.#running].map(([algorithm, digest]) => [algorithm, digest.hex()]));
  }
}

async function digestOf(algorithm: DigestAlgorithm): Promise<Digest> {
  switch (algorithm) {
    case "crc32c":
      return new Crc32c();
    case "blake3": {
      const hash = (await createBLAKE3()).init();
      return { update: (piece) => hash.update(piece), hex: () => hash.digest("hex") };
    }
    default: {
      const hash = createHash(algorithm);
      return { update: (piece) => hash.update(piece), hex: () => hash.digest("hex") };
    }
  }
}
