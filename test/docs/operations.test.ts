/** What docs/operations.md names is there. */
import { globSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { loadConfig } from "../../src/server/config.ts";
import { codeBlocks, page, rows, section } from "../support/markdown.ts";
import { tempDir } from "../support/temp-dir.ts";

const operations = page("docs/operations.md");

test("every event that docs/operations.md names is written somewhere", () => {
  const root = new URL("../../", import.meta.url);
  const source = globSync("src/**/*.ts", { cwd: root })
    .map((file) => readFileSync(new URL(file, root), "utf8"))
    .join("\n");
  const named = rows(section(operations, "## Log")).flatMap(([events = ""]) =>
    events.replaceAll("`", "").split(", "),
  );
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter((event) => !source.includes(`event: "${event}"`))).toEqual([]);
});

test("the settings file of docs/operations.md is one that the server takes", async () => {
  const [block = ""] = codeBlocks(section(operations, "## Settings"), "json");
  const configFile = path.join(await tempDir(), "longshore.json");
  await writeFile(configFile, block);
  const { config } = loadConfig({ env: {}, configFile });
  expect(config).toMatchObject({ publicUrl: "https://files.example.com", maxFileBytes: 100 * 2 ** 30 });
});
