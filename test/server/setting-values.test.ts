import { delimiter } from "node:path";
import { describe, expect, test } from "vitest";
import {
  readAllowedHosts,
  readChoice,
  readCount,
  readDuration,
  readDurationOrNever,
  readFolders,
  readHost,
  readOptional,
  readOrigins,
  readPort,
  readPositiveSize,
  readPublicUrl,
  readSize,
  readSwitch,
  SettingFault,
} from "../../src/server/setting-values.ts";

const accepted: readonly [string, (text: string) => unknown, string, unknown][] = [
  ["size", readSize, "0", 0],
  ["size", readSize, "123", 123],
  ["size", readSize, "500MB", 500_000_000],
  ["size", readSize, "1GiB", 1_073_741_824],
  ["size", readSize, "1.5 KiB", 1536],
  ["size", readSize, "2tib", 2_199_023_255_552],
  ["size", readSize, "7B", 7],
  ["optional size", readOptional(readSize), "none", null],
  ["optional size", readOptional(readSize), "1KB", 1000],
  ["count", readCount, "10", 10],
  ["duration", readDuration, "30m", 1_800_000],
  ["duration", readDuration, "24h", 86_400_000],
  ["duration", readDuration, "7d", 604_800_000],
  ["duration", readDuration, "1500ms", 1500],
  ["duration or never", readDurationOrNever, "never", null],
  ["duration or never", readDurationOrNever, "1s", 1000],
  ["port", readPort, "0", 0],
  ["port", readPort, "65535", 65_535],
  ["host", readHost, "127.0.0.1", "127.0.0.1"],
  ["host", readHost, "[::1]", "::1"],
  ["host", readHost, "::", "::"],
  ["host", readHost, "files.example.com", "files.example.com"],
  ["public URL", readPublicUrl, "https://files.example.com", "https://files.example.com"],
  ["public URL", readPublicUrl, "https://Example.com:443/a/b//", "https://example.com/a/b"],
  ["public URL", readPublicUrl, "http://[::1]:8484", "http://[::1]:8484"],
  [
    "origins",
    readOrigins,
    "https://a.example, http://b.example:81",
    ["https://a.example", "http://b.example:81"],
  ],
  ["origins", readOrigins, "https://A.example/", ["https://a.example"]],
  ["origins", readOrigins, "", []],
  ["allowed hosts", readAllowedHosts, "none", []],
  ["allowed hosts", readAllowedHosts, "files.lan, 10.1.0.0/16 ::1", ["files.lan", "10.1.0.0/16", "::1"]],
  ["folders", readFolders, "none", []],
  ["folders", readFolders, `/a b, /c${delimiter}d`, ["/a b", "/c", "d"]],
  ["switch", readSwitch, "1", true],
  ["switch", readSwitch, "false", false],
  ["choice", readChoice(["always", "never"]), "never", "never"],
];

const refused: readonly [string, (text: string) => unknown, string][] = [
  ["size", readSize, ""],
  ["size", readSize, "1G"],
  ["size", readSize, "-1"],
  ["size", readSize, "1e9"],
  ["size", readSize, "0x10"],
  ["size", readSize, "9007199254740993"],
  ["size", readSize, "1 GiB left"],
  ["positive size", readPositiveSize, "0"],
  ["count", readCount, "1.5"],
  ["count", readCount, "10MB"],
  ["duration", readDuration, "24"],
  ["duration", readDuration, "never"],
  ["duration", readDuration, "1h30m"],
  ["duration", readDuration, "0s"],
  ["duration", readDuration, "999ms"],
  ["duration or never", readDurationOrNever, "Never"],
  ["port", readPort, "65536"],
  ["port", readPort, "80 "],
  ["port", readPort, "http"],
  ["host", readHost, "127.0.0.1:8484"],
  ["host", readHost, "http://127.0.0.1"],
  ["host", readHost, "300.1.1.1"],
  ["host", readHost, "a b"],
  ["public URL", readPublicUrl, "files.example.com"],
  ["public URL", readPublicUrl, "ftp://files.example.com"],
  ["public URL", readPublicUrl, "https://user:pw@files.example.com"],
  ["public URL", readPublicUrl, "https://files.example.com/?a=b"],
  ["public URL", readPublicUrl, "https://files.example.com/#"],
  ["public URL", readPublicUrl, "https://files.example.com/$(id)"],
  ["origins", readOrigins, "*"],
  ["origins", readOrigins, "https://a.example/path"],
  ["origins", readOrigins, "a.example"],
  ["origins", readOrigins, "null"],
  ["allowed hosts", readAllowedHosts, "10.0.0.0/33"],
  ["allowed hosts", readAllowedHosts, "http://files.lan"],
  ["folders", readFolders, "/a\0b"],
  ["switch", readSwitch, "yes"],
  ["choice", readChoice(["always", "never"]), "Always"],
];

describe("the text of a setting", () => {
  test.each(accepted)("%s: $2 is read", (_kind, read, text, value) => {
    expect(read(text)).toEqual(value);
  });

  test.each(refused)("%s: $2 is refused with a sentence's end", (_kind, read, text) => {
    expect(() => read(text)).toThrow(SettingFault);
    expect(() => read(text)).toThrow(/^(is|must|has|may) /);
  });
});
