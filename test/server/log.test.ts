import { describe, expect, test } from "vitest";
import { createLogger } from "../../src/server/log.ts";
import { redactPath, redactText } from "../../src/server/redact.ts";

const ticket = "Zx8-kQ_1aB2cD3eF4gH5iJ6kL7mN8oP9qR0sT1uV";

function logged(lowest: "debug" | "info" | "warn" | "error" = "debug") {
  const lines: string[] = [];
  return { ...createLogger(lowest, (line) => lines.push(line)), lines };
}

describe("the log", () => {
  test("writes one JSON object a line, with time, level and event first", () => {
    const { log, lines } = logged();
    log({ level: "info", event: "thing.happened", count: 3, text: "a\nb" });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(
      /^\{"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","level":"info","event":"thing.happened","count":3,"text":"a\\nb"\}\n$/,
    );
  });

  test("leaves out what is below its level", () => {
    const { log, lines, writes } = logged("warn");
    for (const level of ["debug", "info", "warn", "error"] as const) log({ level, event: level });
    expect(lines.map((line) => (JSON.parse(line) as { event: string }).event)).toEqual(["warn", "error"]);
    expect(writes("info")).toBe(false);
    expect(writes("error")).toBe(true);
  });

  test("tells errors with their message, code, place and cause", () => {
    const { log, lines } = logged();
    const cause = Object.assign(new Error("disk"), { code: "EIO" });
    log({ level: "error", event: "failed", error: new Error("outer", { cause }) });
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      error: { message: "outer", stack: expect.any(Array), cause: { message: "disk", code: "EIO" } },
    });
  });

  test("writes a line even for what JSON cannot hold", () => {
    const { log, lines } = logged();
    const loop: Record<string, unknown> = {};
    loop.self = loop;
    log({ level: "info", event: "loop", loop });
    log({ level: "info", event: "big", count: 2n ** 60n });
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({ event: "loop", unwritable: true });
    expect(JSON.parse(lines[1] ?? "")).toMatchObject({ event: "big", count: "1152921504606846976" });
  });

  test("never shows a ticket, key or token, wherever it stands", () => {
    const { log, lines } = logged();
    log({
      level: "info",
      event: "slip",
      url: `http://127.0.0.1:8484/files/${ticket}/name`,
      concat: `final;/files/${ticket} /files/${ticket}`,
      error: new Error(`GET /d/${ticket}/a.bin`, { cause: new Error(`Authorization: Bearer ${ticket}`) }),
      nested: { ticket, token: ticket, authorization: ticket, list: [{ key: ticket }] },
    });
    expect(lines.join("")).not.toContain(ticket);
    expect(lines.join("")).toContain("/files/[ticket]/name");
  });
});

describe("redaction", () => {
  test.each([
    [`/files/${ticket}`, "/files/[ticket]"],
    [`/files/${ticket}/report.pdf`, "/files/[ticket]/report.pdf"],
    [`/d/${ticket}/report.pdf`, "/d/[ticket]/report.pdf"],
    ["/files/short", "/files/[ticket]"],
    ["/files", "/files"],
    ["/files/", "/files/"],
    ["/mcp", "/mcp"],
    ["/data/files", "/data/files"],
  ])("of the path %s gives %s", (path, shown) => {
    expect(redactPath(path)).toBe(shown);
  });

  test("of text leaves folders of the disk alone", () => {
    expect(redactText("/srv/files/storage/blobs")).toBe("/srv/files/storage/blobs");
  });
});
