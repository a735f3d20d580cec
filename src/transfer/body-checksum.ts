/** Digest of one request's body, checked before the body counts (tus checksum extension, `Content-Digest` of RFC 9530). */
import { createHash, timingSafeEqual } from "node:crypto";
import { TransferError } from "../errors.ts";
import type { AppendRequest } from "./engine.ts";

type Expected = NonNullable<AppendRequest["checksum"]>;

export class BodyChecksum {
  readonly #expected: Expected;
  readonly #hash;

  constructor(expected: Expected) {
    this.#expected = expected;
    this.#hash = createHash(expected.algorithm);
  }

  update(piece: Uint8Array): void {
    this.#hash.update(piece);
  }

  /** Throws `checksum_mismatch` with the cursor where the body was another. */
  verify(cursor: number): void {
    const actual = this.#hash.digest();
    const expected = Buffer.from(this.#expected.hex, "hex");
    if (actual.length === expected.length && timingSafeEqual(actual, expected)) return;
    throw new TransferError(
      "checksum_mismatch",
      `The ${this.#expected.algorithm} of the bytes received is ${actual.toString("hex")}, not ${this.#expected.hex}.`,
      {
        status: this.#expected.failStatus,
        cursor,
        recoveryHint: `Send the same bytes again from offset ${cursor}.`,
      },
    );
  }
}
