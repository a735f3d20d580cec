/** docs/errors.md and the catalogue say the same, in both directions. */
import { globSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { errorCatalogue } from "../../src/errors.ts";
import { page, rows, section } from "../support/markdown.ts";

const markdown = page("docs/errors.md");
const unusedHeading = "## In the catalogue, raised by nothing yet";
const told = rows(markdown).filter((cells) => cells.length === 5);
const unused = rows(section(markdown, unusedHeading)).map(([code]) => code);

const root = new URL("../../", import.meta.url);
const sources = globSync("src/**/*.ts", { cwd: root })
  .filter((file) => file.replaceAll("\\", "/") !== "src/errors.ts")
  .map((file) => readFileSync(new URL(file, root), "utf8"))
  .join("\n");

describe("docs/errors.md", () => {
  test("tells every code of the catalogue once, and no other", () => {
    expect(told.map(([code]) => code).sort()).toEqual(Object.keys(errorCatalogue).sort());
  });

  test.each(Object.entries(errorCatalogue))("tells status and retryable of %s as they are", (code, entry) => {
    const [, status, retryable] = told.find(([name]) => name === code) ?? [];
    expect([status, retryable]).toEqual([String(entry.status), entry.retryable ? "yes" : "no"]);
  });

  test("calls a code unused exactly where nothing raises it", () => {
    const raised = Object.keys(errorCatalogue).filter((code) => sources.includes(`"${code}"`));
    expect(
      Object.keys(errorCatalogue)
        .filter((code) => !raised.includes(code))
        .sort(),
    ).toEqual([...unused].sort());
  });
});
