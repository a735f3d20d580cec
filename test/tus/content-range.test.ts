import { describe, expect, test } from "vitest";
import { TransferError } from "../../src/errors.ts";
import { readPosition, readSize } from "../../src/tus/byte-count.ts";
import { readContentRange } from "../../src/tus/content-range.ts";

function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof TransferError) return error.code;
    throw error;
  }
  return "accepted";
}

describe("Content-Range of a request", () => {
  test.each([
    ["bytes 0-99/100", { start: 0, end: 100, sizeBytes: 100 }],
    ["bytes 10-19/100", { start: 10, end: 20, sizeBytes: 100 }],
    ["BYTES 10-19/*", { start: 10, end: 20, sizeBytes: null }],
    ["bytes 0--1/0", { start: 0, end: 0, sizeBytes: 0 }],
    ["bytes 100-99/100", { start: 100, end: 100, sizeBytes: 100 }],
    [
      "bytes 9007199254740990-9007199254740990/9007199254740991",
      { start: 9007199254740990, end: 9007199254740991, sizeBytes: 9007199254740991 },
    ],
  ])("%s is understood", (text, range) => {
    expect(readContentRange(text)).toEqual(range);
  });

  test.each([
    "",
    "bytes",
    "bytes 0-9",
    "bytes */100",
    "bytes 0-/100",
    "bytes -9/100",
    "bytes 9-3/100",
    "bytes 5--1/100",
    "bytes 0-100/100",
    "bytes 01-2/100",
    "bytes +1-2/100",
    "bytes 1-2/1e3",
    "bytes 0-9/100, bytes 0-9/100",
    "items 0-9/100",
    "bytes 0-9/100 ",
    "bytes 9007199254740993-9007199254740994/*",
  ])("%j is refused", (text) => {
    expect(codeOf(() => readContentRange(text))).toBe("invalid_param");
  });

  test("a total that no file can have is too large", () => {
    expect(codeOf(() => readContentRange("bytes 0-9/9007199254740992"))).toBe("file_too_large");
  });
});

describe("a number of bytes", () => {
  test.each(["", " ", "-1", "+1", "1.0", "1e3", "0x10", "01", "1 ", "1,1", "١", "NaN", "Infinity"])(
    "%j is refused",
    (text) => {
      expect(codeOf(() => readSize("Upload-Length", text))).toBe("invalid_param");
      expect(codeOf(() => readPosition("Upload-Offset", text))).toBe("invalid_param");
    },
  );

  test("is exact up to 2^53 - 1 and refused above", () => {
    expect(readSize("Upload-Length", "9007199254740991")).toBe(Number.MAX_SAFE_INTEGER);
    expect(codeOf(() => readSize("Upload-Length", "9007199254740992"))).toBe("file_too_large");
    expect(codeOf(() => readSize("Upload-Length", "9".repeat(5000)))).toBe("file_too_large");
    expect(codeOf(() => readPosition("Upload-Offset", "9007199254740993"))).toBe("invalid_param");
  });
});
