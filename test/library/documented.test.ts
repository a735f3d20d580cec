/** Everything that the package exports says what it is, with an example. */
import { globSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

const root = new URL("../../", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), "utf8");
const sources = globSync("src/**/*.ts", { cwd: root }).map(read);

function exportedBy(entry: string): string[] {
  const source = read(entry);
  const lists = [...source.matchAll(/export (?:type )?\{([^}]*)\}/g)].map(([, list = ""]) => list);
  const own = [...source.matchAll(/^export (?:async )?function (\w+)/gm)].map(([, name = ""]) => name);
  return [...lists.flatMap((list) => list.split(",")), ...own]
    .map((name) => name.replace(/\btype\b/, "").trim())
    .filter((name) => name !== "");
}

/** The doc comments right above declarations of this name. */
function commentsOn(name: string): string[] {
  const declaration = new RegExp(
    `(/\\*\\*(?:(?!\\*/)[\\s\\S])*\\*/)\\n(?:// .*\\n)*export (?:async )?(?:interface|type|class|const|function) ${name}\\b`,
    "g",
  );
  return sources.flatMap((source) => [...source.matchAll(declaration)].map(([, comment = ""]) => comment));
}

describe.each([
  ["longshore/tasks", "src/library/tasks.ts"],
  ["longshore/files", "src/library/files.ts"],
  ["longshore/client", "src/client/index.ts"],
  ["longshore/client in a browser", "src/client/browser.ts"],
])("%s", (_name, entry) => {
  test("documents each export with an example", () => {
    const names = exportedBy(entry);
    expect(names.length).toBeGreaterThan(8);
    const bare = names.filter(
      (name) => !commentsOn(name).some((comment) => /@example\n \* \S/.test(comment)),
    );
    expect(bare).toEqual([]);
  });
});
