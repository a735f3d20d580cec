import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { marginBytes, textWindow } from "../../src/mcp/text-window.ts";

/** Reads as the tool does: with a margin on both sides. */
function read(file: Buffer, offset: number, length: number) {
  const from = Math.max(0, offset - marginBytes);
  return textWindow(file.subarray(from, offset + length + marginBytes), offset - from, length);
}

function readAll(file: Buffer, length: number): string {
  let text = "";
  for (let offset = 0; offset < file.length; ) {
    const window = read(file, offset, length);
    if (window.kind !== "text") throw new Error(`${window.kind} at ${offset}`);
    expect(window.bytes).toBeGreaterThan(0);
    expect(Buffer.byteLength(window.text)).toBe(window.bytes);
    text += window.text;
    offset += window.bytes;
  }
  return text;
}

describe("windows of text", () => {
  test("windows of any length put together give the text, byte for byte", () => {
    const text = "\uFEFFaé漢😀\r\n\u0000𝄞ß\u{10FFFF}z".repeat(7);
    for (let length = 1; length < 40; length += 1) expect(readAll(Buffer.from(text), length)).toBe(text);
  });

  test("a window shorter than a character holds the whole character", () => {
    expect(read(Buffer.from("😀x"), 0, 1)).toEqual({ kind: "text", text: "😀", bytes: 4 });
  });

  test("a window never holds more than was asked for otherwise", () => {
    expect(read(Buffer.from("ab漢"), 0, 4)).toEqual({ kind: "text", text: "ab", bytes: 2 });
    expect(read(Buffer.from("ab漢"), 0, 5)).toEqual({ kind: "text", text: "ab漢", bytes: 5 });
  });

  test.each([1, 2, 3])("a start %i bytes into a character is told", (back) => {
    expect(read(Buffer.from("ab😀cd"), 2 + back, 3)).toEqual({ kind: "inside", back });
  });

  test("the end of the file is an empty window", () => {
    expect(read(Buffer.from("ab"), 2, 10)).toEqual({ kind: "text", text: "", bytes: 0 });
    expect(read(Buffer.alloc(0), 0, 10)).toEqual({ kind: "text", text: "", bytes: 0 });
  });

  test.each([
    ["a byte that never occurs", Buffer.from([0x61, 0xff, 0x62])],
    ["a continuation without a start", Buffer.from([0x80, 0x80, 0x80, 0x80, 0x80])],
    ["a surrogate", Buffer.from([0xed, 0xa0, 0x80])],
    ["an overlong form", Buffer.from([0xc0, 0xaf])],
    ["a character cut off by the end of the file", Buffer.from([0x61, 0xf0, 0x9f, 0x98])],
    ["Latin-1", Buffer.from("Grüße", "latin1")],
  ])("%s is not text", (_what, file) => {
    expect(read(file, 0, 100)).toEqual({ kind: "binary" });
  });

  test("control characters do not make a result larger than its bound", () => {
    const file = Buffer.alloc(8192);
    const window = read(file, 0, 8192);
    expect(window.kind === "text" && JSON.stringify(window.text).length).toBeLessThan(13_000);
    expect(readAll(file, 8192)).toBe("\u0000".repeat(8192));
  });

  test("random bytes never make it throw or stand still", () => {
    for (let round = 0; round < 2000; round += 1) {
      const file = randomBytes(round % 30);
      for (let offset = 0; offset <= file.length; offset += 1) {
        const window = read(file, offset, 1 + (round % 7));
        if (window.kind === "text" && offset < file.length) expect(window.bytes).toBeGreaterThan(0);
      }
    }
  });
});
