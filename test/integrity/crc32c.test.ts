import { expect, test } from "vitest";
import { Crc32c } from "../../src/integrity/crc32c.ts";
import { someBytes } from "../support/tus-requests.ts";

const crc32c = (...pieces: Uint8Array[]): string => {
  const sum = new Crc32c();
  for (const piece of pieces) sum.update(piece);
  return sum.hex();
};

/** Bit by bit, as the polynomial is defined. */
function plainCrc32c(bytes: Uint8Array): string {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  }
  return (~crc >>> 0).toString(16).padStart(8, "0");
}

test.each([
  ["nothing", Buffer.alloc(0), "00000000"],
  ["123456789", Buffer.from("123456789"), "e3069283"],
  ["32 zero bytes (RFC 3720 appendix B.4)", Buffer.alloc(32), "8a9136aa"],
  ["32 bytes of ones (RFC 3720 appendix B.4)", Buffer.alloc(32, 0xff), "62a8ab43"],
  [
    "the bytes 0 to 31 (RFC 3720 appendix B.4)",
    Buffer.from(Array.from({ length: 32 }, (_, i) => i)),
    "46dd794e",
  ],
])("the crc32c of %s is the published one", (_name, bytes, hex) => {
  expect(crc32c(bytes)).toBe(hex);
});

test("the crc32c of any length, in pieces of any length, is the one that the definition gives", () => {
  const bytes = someBytes(1_000);
  for (let length = 0; length < 100; length += 1) {
    expect(crc32c(bytes.subarray(0, length))).toBe(plainCrc32c(bytes.subarray(0, length)));
  }
  for (const cut of [0, 1, 7, 8, 9, 500, 999, 1_000]) {
    expect(crc32c(bytes.subarray(0, cut), bytes.subarray(cut))).toBe(plainCrc32c(bytes));
  }
});
