import { describe, expect, test } from "vitest";
import { judgePreconditions, rangeCounts } from "../../src/tus/preconditions.ts";

const etag = '"abc"';
const lastModified = new Date("2026-03-04T05:06:07.890Z");
const sameDate = "Wed, 04 Mar 2026 05:06:07 GMT";
const earlier = "Wed, 04 Mar 2026 05:06:06 GMT";
const later = "Wed, 04 Mar 2026 05:06:08 GMT";

const headerOf = (fields: Record<string, string>) => (name: string) => fields[name] ?? null;

describe("conditional requests", () => {
  test.each([
    [{}, "go_on"],
    [{ "if-match": etag }, "go_on"],
    [{ "if-match": `"x", ${etag}` }, "go_on"],
    [{ "if-match": "*" }, "go_on"],
    [{ "if-match": '"x"' }, "failed"],
    [{ "if-match": `W/${etag}` }, "failed"],
    [{ "if-unmodified-since": sameDate }, "go_on"],
    [{ "if-unmodified-since": earlier }, "failed"],
    [{ "if-unmodified-since": "rubbish" }, "go_on"],
    [{ "if-match": etag, "if-unmodified-since": earlier }, "go_on"],
    [{ "if-none-match": etag }, "not_modified"],
    [{ "if-none-match": `W/${etag}` }, "not_modified"],
    [{ "if-none-match": "*" }, "not_modified"],
    [{ "if-none-match": '"x"' }, "go_on"],
    [{ "if-modified-since": sameDate }, "not_modified"],
    [{ "if-modified-since": later }, "not_modified"],
    [{ "if-modified-since": earlier }, "go_on"],
    [{ "if-none-match": '"x"', "if-modified-since": later }, "go_on"],
    [{ "if-match": '"x"', "if-none-match": etag }, "failed"],
  ])("%j gives %s", (fields: Record<string, string>, verdict) => {
    expect(judgePreconditions(headerOf(fields), { etag, lastModified })).toBe(verdict);
  });

  test.each([
    [{}, true],
    [{ "if-range": etag }, true],
    [{ "if-range": sameDate }, true],
    [{ "if-range": '"x"' }, false],
    [{ "if-range": `W/${etag}` }, false],
    [{ "if-range": earlier }, false],
    [{ "if-range": later }, false],
    [{ "if-range": "rubbish" }, false],
  ])("with %j the range counts: %s", (fields: Record<string, string>, counts) => {
    expect(rangeCounts(headerOf(fields), { etag, lastModified })).toBe(counts);
  });
});
