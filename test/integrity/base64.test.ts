import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { TransferError } from "../../src/errors.ts";
import { decodeBase64 } from "../../src/integrity/base64.ts";

function fault(text: string): TransferError {
  try {
    decodeBase64(text, "data");
  } catch (error) {
    if (error instanceof TransferError) return error;
  }
  throw new Error(`${JSON.stringify(text)} was accepted`);
}

describe("strict base64", () => {
  test("every length comes out as it went in", () => {
    for (let length = 0; length < 300; length += 1) {
      const bytes = randomBytes(length);
      expect(decodeBase64(bytes.toString("base64"), "data").equals(bytes)).toBe(true);
    }
  });

  test.each([
    ["a line break", "QUJD\nREVG", 4, "U+000A"],
    ["a blank at the end", "QUJD ", 4, "U+0020"],
    ["the alphabet of URLs", "QU-D", 2, '"-"'],
    ["another letter", "QUJé", 3, "U+00E9"],
    ["a character beyond the first plane", "😀😀", 0, "U+1F600"],
    ["padding in the middle", "QQ==QUJD", 2, '"="'],
    ["too much padding", "Q===", 1, '"="'],
    ["nothing but padding", "====", 0, '"="'],
    ["no padding", "QUI", 3, "multiple of 4"],
    ["a lost character", "QUJDR", 5, "multiple of 4"],
    ["padding after a whole group", "QUJD=", 5, "multiple of 4"],
    ["bits after the last byte", "QUJ=", 2, '"J"'],
    ["bits after the only byte", "QR==", 1, '"R"'],
  ])("%s is refused and its position told", (_what, text, position, named) => {
    const error = fault(text);
    expect(error.code).toBe("invalid_base64");
    expect(error.options.param).toBe("data");
    expect(error.options.extra).toEqual({ position });
    expect(error.message).toContain(named);
  });

  test("a text with one character changed, lost or gained never gives the same bytes", () => {
    for (let round = 0; round < 500; round += 1) {
      const bytes = randomBytes(1 + (round % 40));
      const text = bytes.toString("base64");
      const at = round % text.length;
      const changed = [
        text.slice(0, at) + text.slice(at + 1),
        `${text.slice(0, at)}A${text.slice(at)}`,
        text.slice(0, at) + (text[at] === "A" ? "B" : "A") + text.slice(at + 1),
      ];
      for (const wrong of changed) {
        let decoded: Buffer | null = null;
        try {
          decoded = decodeBase64(wrong, "data");
        } catch (error) {
          expect(error).toBeInstanceOf(TransferError);
        }
        expect(decoded?.equals(bytes) ?? false, `${text} and ${wrong}`).toBe(false);
      }
    }
  });

  test("a megabyte is decoded in well under a second", () => {
    const bytes = randomBytes(1 << 20);
    const text = bytes.toString("base64");
    const start = performance.now();
    expect(decodeBase64(text, "data").length).toBe(bytes.length);
    expect(() => decodeBase64(`${text.slice(0, -1)}!`, "data")).toThrow(TransferError);
    expect(performance.now() - start).toBeLessThan(500);
  });
});
