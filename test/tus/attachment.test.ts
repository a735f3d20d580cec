import { parse } from "content-disposition";
import { describe, expect, test } from "vitest";
import { attachment } from "../../src/tus/download.ts";

describe("Content-Disposition", () => {
  test.each([
    ["plan.pdf", "plan.pdf"],
    ["two words.txt", "two words.txt"],
    ['quo"te;=,.txt', 'quo"te;=,.txt'],
    ["größe €.txt", "größe €.txt"],
    ["文件 🚢.tar.gz", "文件 🚢.tar.gz"],
    ["100%25.txt", "100%25.txt"],
    ["../../etc/passwd", ".._.._etc_passwd"],
    ["C:\\temp\\x", "C:_temp_x"],
    ["a\r\nX-Evil: 1", "a__X-Evil: 1"],
    ["nul\u0000", "nul_"],
    ["half \ud83d pair", "half \ufffd pair"],
    ["x".repeat(1024), "x".repeat(1024)],
  ])("of %j names the file %j, always as an attachment", (filename, shown) => {
    const field = attachment(filename);
    expect(field).toMatch(/^[\x20-\x7e]+$/);
    expect(parse(field)).toMatchObject({ type: "attachment", parameters: { filename: shown } });
  });

  test("has a plain ASCII name for those who know no other", () => {
    expect(attachment("größe 🚢.txt")).toBe(
      "attachment; filename=\"gr__e _.txt\"; filename*=UTF-8''gr%C3%B6%C3%9Fe%20%F0%9F%9A%A2.txt",
    );
  });

  test("of a file without a name has none", () => {
    expect(attachment(null)).toBe("attachment");
  });
});
