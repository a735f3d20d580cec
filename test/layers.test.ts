/**
 * Holds the layers of docs/architecture.md by reading every import of src/, independent of the linter's configuration:
 * switching a lint rule off does not open a way around them.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { describe, expect, test } from "vitest";

/** A folder (or file) directly in src/ → the others it may import. Itself is always allowed. */
const below = {
  errors: [],
  log: [],
  integrity: ["errors", "log"],
  transfer: ["errors", "log", "integrity"],
  tasks: ["errors", "log", "integrity", "transfer"],
  store: ["errors", "log", "integrity", "transfer", "tasks"],
  web: ["errors", "log", "integrity", "transfer", "tasks"],
  tus: ["errors", "log", "integrity", "transfer", "tasks", "web"],
  mcp: ["errors", "log", "integrity", "transfer", "tasks", "web"],
  server: ["errors", "log", "integrity", "transfer", "tasks", "store", "web", "tus", "mcp"],
  library: ["errors", "log", "integrity", "transfer", "tasks", "store", "web", "tus", "mcp", "server"],
  // Runs in browsers, so it has nothing of the house but the words for errors.
  client: ["errors"],
  cli: ["errors", "log", "integrity", "transfer", "tasks", "store", "web", "tus", "mcp", "server", "client"],
  index: ["library"],
} as const satisfies Record<string, readonly string[]>;

/** Modules from outside that have one home; a path ending in `/` is a folder. */
const homes: readonly { readonly module: RegExp; readonly in: readonly string[] }[] = [
  { module: /^(hono|@hono)(\/|$)/, in: ["src/server/", "src/tus/", "src/web/", "src/mcp/endpoint.ts"] },
  { module: /^@modelcontextprotocol\//, in: ["src/mcp/"] },
  { module: /^(node:sqlite$|kysely(\/|$)|pg(\/|-|$)|@aws-sdk\/|@smithy\/)/, in: ["src/store/"] },
  { module: /^commander(\/|$)/, in: ["src/cli/"] },
];

const environmentHome = "src/server/config.ts";

// Between the keyword and `from` stand only names, braces, commas, a star and comments, so no expression can match.
const staticImport =
  /^[ \t]*(?:import|export)\b(?:(?:[\w$\s,{}*]|\/\/[^\n]*\n|\/\*[\s\S]*?\*\/)+?\bfrom)?\s*(["'])([^"'\n]+)\1/gm;
// import("x") as an expression or a type, require("x"), require.resolve("x"), import.meta.resolve("x").
const callImport =
  /\b(?:import|require(?:\.resolve)?|import\.meta\.resolve)\s*\(\s*(?:\/\*[\s\S]*?\*\/\s*)?(["'`])([^"'`\n]+)\1/g;
// A worker is started by its URL, whose extension may be computed: it differs between src/ and dist/.
const workerImport =
  /\bnew\s+URL\(\s*(["'`])([^"'`\n]+(?:\.[jt]s|\$\{[^"'`\n]*\}))\1\s*,\s*import\.meta\.url/g;
const unreadableImport = /(?<![\w.$])import\s*\(\s*(?!\/\*|\s|["'`])/;
const readsEnvironment = [
  /\bprocess\s*\??\.\s*env\b/,
  /\bprocess\s*(?:\?\.)?\[\s*["'`]env/,
  /\{[^{}]*\benv\b[^{}]*\}\s*=\s*(?:globalThis\s*\.\s*)?process\b/,
  /\bimport\s*\{[^{}]*\benv\b[^{}]*\}\s*from\s*["'](?:node:)?process["']/,
];

const importsOf = (source: string): string[] =>
  [staticImport, callImport, workerImport].flatMap((pattern) =>
    [...source.matchAll(pattern)].map((match) => match[2] ?? ""),
  );

const withoutCommentLines = (source: string): string => source.replace(/^[ \t]*(?:\/\/|\/?\*).*$/gm, "");

const layerOf = (path: string): string => (path.split("/")[1] ?? "").replace(/\.ts$/, "");

/** Every break of the layers in one file, each as a sentence that names the file and the import. */
function violations(file: string, source: string): string[] {
  const layer = layerOf(file);
  const allowed: readonly string[] | undefined = Object.entries(below).find(([name]) => name === layer)?.[1];
  if (allowed === undefined) return [`${file} stands in src/${layer}, which has no place in the layers.`];
  const found: string[] = [];
  for (const specifier of importsOf(source)) {
    if (specifier.startsWith(".")) {
      const target = posix.join(posix.dirname(file), specifier);
      const targetLayer = layerOf(target);
      if (!target.startsWith("src/")) {
        found.push(`${file} imports ${specifier}, which is outside of src/.`);
      } else if (targetLayer !== layer && !allowed.includes(targetLayer)) {
        found.push(`${file} imports ${specifier}, but ${layer} may not import ${targetLayer}.`);
      }
    }
    const home = homes.find(({ module }) => module.test(specifier));
    if (home && !home.in.some((place) => (place.endsWith("/") ? file.startsWith(place) : file === place))) {
      found.push(`${file} imports ${specifier}, which stays in ${home.in.join(", ")}.`);
    }
  }
  const code = withoutCommentLines(source);
  if (unreadableImport.test(code)) found.push(`${file} imports a module whose name is not written out.`);
  if (file !== environmentHome && readsEnvironment.some((pattern) => pattern.test(code))) {
    found.push(`${file} reads process.env, which only ${environmentHome} may do.`);
  }
  return found;
}

const root = new URL("../", import.meta.url);
const sources = globSync("src/**/*.ts", { cwd: root })
  .map((path) => path.replaceAll("\\", "/"))
  .sort();

describe("the layers of src/", () => {
  test("there are sources to read", () => {
    expect(existsSync(new URL("src/", root)), "src/ is missing").toBe(true);
    expect(sources.length).toBeGreaterThan(0);
  });

  test("every import points down, and every outside module and process.env stay in their home", () => {
    const found = sources.flatMap((file) => violations(file, readFileSync(new URL(file, root), "utf8")));
    expect(found.join("\n")).toBe("");
  });
});

describe("the reader of the layers", () => {
  test.each([
    ['import { x } from "../mcp/envelope.ts";', "../mcp/envelope.ts"],
    ["import '../mcp/envelope.ts';", "../mcp/envelope.ts"],
    ['import type {\n  A,\n  B, // why, says "someone"\n} from "../mcp/envelope.ts";', "../mcp/envelope.ts"],
    ['import a, * as b from "../mcp/envelope.ts";', "../mcp/envelope.ts"],
    ['export * from "../mcp/envelope.ts";', "../mcp/envelope.ts"],
    ['export type { A } from "../mcp/envelope.ts";', "../mcp/envelope.ts"],
    ['const m = await import(\n  "../mcp/envelope.ts"\n);', "../mcp/envelope.ts"],
    ["const m = await import(`../mcp/envelope.ts`);", "../mcp/envelope.ts"],
    ['type A = typeof import("../mcp/envelope.ts");', "../mcp/envelope.ts"],
    ['new Worker(new URL("../mcp/envelope.ts", import.meta.url));', "../mcp/envelope.ts"],
    [`new URL(\`../mcp/envelope\${ext}\`, import.meta.url);`, `../mcp/envelope\${ext}`],
  ])("finds the import in %j", (source, specifier) => {
    expect(violations("src/tus/patch.ts", source)).toEqual([
      `src/tus/patch.ts imports ${specifier}, but tus may not import mcp.`,
    ]);
  });

  test.each([
    ['const a = Buffer.from("../mcp/x.ts");'],
    ['export const from = "../mcp/x.ts";'],
    ['readFileSync(new URL("../../package.json", import.meta.url));'],
    ['export class A {\n  // comes from "../mcp/x.ts"\n}'],
    [' * import { x } from "../mcp/x.ts";'],
    ["// process.env is read in server/config.ts"],
    ['import { readFile } from "node:fs/promises";\nimport { TransferError } from "../errors.ts";'],
  ])("finds nothing wrong in %j", (source) => {
    expect(violations("src/tus/patch.ts", source)).toEqual([]);
  });

  test.each([
    ["src/errors.ts", 'import { sha } from "./integrity/digest.ts";', "errors may not import integrity"],
    ["src/integrity/a.ts", 'import { a } from "../transfer/a.ts";', "integrity may not import transfer"],
    ["src/transfer/a.ts", 'import { a } from "../store/state/a.ts";', "transfer may not import store"],
    ["src/transfer/a.ts", 'import { a } from "../tasks/a.ts";', "transfer may not import tasks"],
    ["src/tasks/kinds/a.ts", 'import { a } from "../../store/a.ts";', "tasks may not import store"],
    ["src/mcp/a.ts", 'import { a } from "../tus/a.ts";', "mcp may not import tus"],
    ["src/server/a.ts", 'import { a } from "../cli/main.ts";', "server may not import cli"],
    ["src/tus/a.ts", 'import { a } from "../index.ts";', "tus may not import index"],
    ["src/tus/a.ts", 'import { a } from "../../test/a.ts";', "outside of src/"],
    ["src/client/a.ts", 'import { a } from "../transfer/a.ts";', "client may not import transfer"],
    ["src/server/a.ts", 'import { a } from "../library/a.ts";', "server may not import library"],
    ["src/cli/a.ts", 'import { a } from "../library/a.ts";', "cli may not import library"],
    ["src/utils/a.ts", "", "has no place in the layers"],
    ["src/transfer/a.ts", 'import { Hono } from "hono/tiny";', "imports hono/tiny, which stays in"],
    ["src/mcp/tools/a.ts", 'import { serve } from "@hono/node-server";', "@hono/node-server, which stays in"],
    [
      "src/server/a.ts",
      'import { McpServer } from "@modelcontextprotocol/server";',
      "which stays in src/mcp/",
    ],
    ["src/server/a.ts", 'import { DatabaseSync } from "node:sqlite";', "which stays in src/store/"],
    ["src/tasks/a.ts", 'import pg from "pg";', "which stays in src/store/"],
    ["src/tus/a.ts", 'import { S3Client } from "@aws-sdk/client-s3";', "which stays in src/store/"],
    ["src/tus/a.ts", "const m = await import(name);", "whose name is not written out"],
    ["src/cli/main.ts", "const port = process.env.PORT;", "reads process.env"],
    ["src/tus/a.ts", "const { env } = process;", "reads process.env"],
    ["src/tus/a.ts", 'import { env } from "node:process";', "reads process.env"],
  ])("%s with %j is refused", (file, source, reason) => {
    const found = violations(file, source);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(file);
    expect(found[0]).toContain(reason);
  });

  test("a module from outside is at home where it belongs", () => {
    expect(violations("src/mcp/endpoint.ts", 'import { Hono } from "hono";')).toEqual([]);
    expect(violations("src/store/state/sqlite.ts", 'import { DatabaseSync } from "node:sqlite";')).toEqual(
      [],
    );
    expect(violations("src/server/config.ts", "const port = process.env.PORT;")).toEqual([]);
  });
});
