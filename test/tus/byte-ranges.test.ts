import { describe, expect, test } from "vitest";
import { parseRange } from "../../src/tus/byte-ranges.ts";

describe("Range", () => {
  test.each([
    ["bytes=0-0", [{ start: 0, end: 1 }]],
    ["bytes=0-", [{ start: 0, end: 1000 }]],
    ["bytes=990-", [{ start: 990, end: 1000 }]],
    ["bytes=990-5000", [{ start: 990, end: 1000 }]],
    ["bytes=-10", [{ start: 990, end: 1000 }]],
    ["bytes=-5000", [{ start: 0, end: 1000 }]],
    ["Bytes = 5-9", [{ start: 5, end: 10 }]],
    [
      "bytes=0-0,-1",
      [
        { start: 0, end: 1 },
        { start: 999, end: 1000 },
      ],
    ],
    ["bytes=0-0,2000-3000", [{ start: 0, end: 1 }]],
  ])("%s of 1,000 bytes", (text, ranges) => {
    expect(parseRange(text, 1000)).toEqual(ranges);
  });

  test.each([
    "bytes=1000-",
    "bytes=-0",
    "bytes=5000-6000",
    "bytes=1000-,2000-",
    "bytes=99999999999999999999-",
  ])("%s of 1,000 bytes cannot be satisfied", (text) => {
    expect(parseRange(text, 1000)).toBe("unsatisfiable");
  });

  test.each([
    "",
    "bytes",
    "bytes=",
    "bytes=a-b",
    "bytes=9-3",
    "bytes=-",
    "bytes=1-2-3",
    "bytes=1-2=3",
    "lines=0-9",
    "bytes=0-1,",
    "bytes=0.5-1",
  ])("%j does not count", (text) => {
    expect(parseRange(text, 1000)).toBeNull();
  });

  test("nothing of an empty file can be asked for", () => {
    expect(parseRange("bytes=0-", 0)).toBe("unsatisfiable");
    expect(parseRange("bytes=-1", 0)).toBe("unsatisfiable");
  });

  test("overlapping and near ranges become one, the rest keep their order", () => {
    expect(parseRange("bytes=5000-5999,0-99,50-149,200-249", 10_000)).toEqual([
      { start: 5000, end: 6000 },
      { start: 0, end: 250 },
    ]);
  });

  test("never sends a byte twice, however often it is asked for", () => {
    const ranges = parseRange(`bytes=${Array.from({ length: 32 }, () => "0-").join(",")}`, 10_000);
    expect(ranges).toEqual([{ start: 0, end: 10_000 }]);
  });

  test("of more than 32 pieces does not count", () => {
    const list = (count: number) =>
      `bytes=${Array.from({ length: count }, (_, i) => `${i * 1000}-${i * 1000 + 1}`).join(",")}`;
    expect(parseRange(list(32), 100_000)).toHaveLength(32);
    expect(parseRange(list(33), 100_000)).toBeNull();
  });
});
