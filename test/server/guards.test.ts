import { describe, expect, test } from "vitest";
import { hostnameOf, isAllowedHost, isAllowedOrigin } from "../../src/server/guards.ts";

const publicUrl = "https://files.example.com/base";

describe("Host", () => {
  test.each([
    ["127.0.0.1:8484", "127.0.0.1"],
    ["LocalHost", "localhost"],
    ["[::1]:8484", "[::1]"],
    ["localhost.", "localhost"],
    ["", null],
    [undefined, null],
    ["a b", null],
    ["user@localhost", null],
    ["localhost:http", null],
    ["evil.example/localhost", null],
  ])("%s names %s", (header, hostname) => {
    expect(hostnameOf(header)).toBe(hostname);
  });

  test.each([
    "localhost",
    "localhost:1",
    "127.0.0.1",
    "127.3.4.5:80",
    "[::1]:8484",
    "files.example.com",
    "files.example.com:444",
  ])("%s is answered", (header) => {
    expect(isAllowedHost(header, publicUrl)).toBe(true);
  });

  test.each([
    "evil.example",
    "localhost.evil.example",
    "files.example.com.evil.example",
    "10.0.0.1",
    "[::2]",
    undefined,
  ])("%s is not answered", (header) => {
    expect(isAllowedHost(header, publicUrl)).toBe(false);
  });
});

describe("Origin", () => {
  const neighbourhood = { publicUrl: () => publicUrl, allowedOrigins: ["https://app.example"] };

  test.each([
    undefined,
    "http://localhost:3000",
    "http://127.0.0.1",
    "https://[::1]:1",
    "https://files.example.com",
    "https://app.example",
  ])("%s may create", (origin) => {
    expect(isAllowedOrigin(origin, neighbourhood)).toBe(true);
  });

  test.each([
    "null",
    "",
    "https://evil.example",
    "http://app.example",
    "https://app.example:444",
    "https://app.example.evil.example",
    "file://localhost",
    "http://localhost.evil.example",
  ])("%s may not create", (origin) => {
    expect(isAllowedOrigin(origin, neighbourhood)).toBe(false);
  });
});
