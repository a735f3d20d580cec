/** What a browser loads has nothing of Node in it. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const imports = /(?:^|\n)\s*(?:import|export)\b[^;"']*?from\s*["']([^"']+)["']|import\(\s*["']([^"']+)["']/g;

function modulesFrom(entry: URL, found = new Map<string, string[]>()): Map<string, string[]> {
  if (found.has(entry.href)) return found;
  const source = readFileSync(entry, "utf8");
  const specifiers = [...source.matchAll(imports)].map((match) => match[1] ?? match[2] ?? "");
  found.set(entry.href, specifiers);
  for (const specifier of specifiers)
    if (specifier.startsWith(".")) modulesFrom(new URL(specifier, entry), found);
  return found;
}

test("the entry for browsers imports no module of Node, directly or through others", () => {
  const found = modulesFrom(new URL("../../src/client/browser.ts", import.meta.url));
  expect(found.size).toBeGreaterThan(5);
  const outside = [...found.values()].flat().filter((specifier) => !specifier.startsWith("."));
  expect([...new Set(outside)]).toEqual(["hash-wasm"]);
  for (const href of found.keys()) {
    const code = readFileSync(new URL(href), "utf8").replace(/^\s*(?:\/\/|\/?\*).*$/gm, "");
    expect(code, href).not.toMatch(/\b(?:Buffer|process)\s*[.(]/);
  }
});
