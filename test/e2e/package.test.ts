/** The package as npm packs it, installed into an empty project: used there, and checked by the project's own compiler. */
import { execFile } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { cleanEnv } from "../support/built-server.ts";
import { useFolder } from "../support/server-process.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const consumer = fileURLToPath(new URL("./consumer/", import.meta.url));
const manifest = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as {
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
  exports: Record<string, unknown>;
};

const folder = useFolder();
const run = promisify(execFile);
const inProject = (command: string, args: readonly string[]) =>
  run(command, args, { cwd: folder.path, env: cleanEnv(), timeout: 240_000 });

/** Paths in the tarball. */
let packed: string[] = [];

beforeAll(async () => {
  const { stdout } = await run(
    "npm",
    ["pack", "--json", "--ignore-scripts", "--pack-destination", folder.path],
    {
      cwd: root,
      maxBuffer: 2 ** 26,
    },
  );
  const [told] = Object.values(
    JSON.parse(stdout) as Record<string, { filename: string; files: { path: string }[] }>,
  );
  packed = told?.files.map((file) => file.path) ?? [];
  writeFileSync(
    path.join(folder.path, "package.json"),
    JSON.stringify({ name: "consumer", private: true, type: "module" }),
  );
  // What the project uses besides, in the versions that it would have.
  const beside = ["@modelcontextprotocol/client", "@modelcontextprotocol/sdk", "@types/node"].map(
    (name) => `${name}@${manifest.devDependencies[name]}`,
  );
  const shared = ["@modelcontextprotocol/server", "zod"].map(
    (name) => `${name}@${manifest.dependencies[name]}`,
  );
  await inProject("npm", [
    ...["install", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts"],
    `./${told?.filename}`,
    ...beside,
    ...shared,
  ]);
  mkdirSync(path.join(folder.path, "src"));
  for (const file of ["main.ts", "browser.ts"])
    copyFileSync(path.join(consumer, file), path.join(folder.path, "src", file));
}, 300_000);

async function compile(file: string, options: Record<string, unknown>): Promise<string> {
  const config = {
    compilerOptions: { strict: true, noEmit: true, target: "es2024", ...options },
    files: [`src/${file}`],
  };
  writeFileSync(path.join(folder.path, "tsconfig.json"), JSON.stringify(config));
  return inProject(process.execPath, [path.join(root, "node_modules/typescript/bin/tsc"), "-p", "."]).then(
    ({ stdout }) => stdout,
    (error: { stdout: string }) => error.stdout,
  );
}

describe("the package", () => {
  test("holds what runs, and neither sources nor tests", () => {
    expect(packed).toEqual(
      expect.arrayContaining(["package.json", "README.md", "LICENSE", "dist/index.d.ts"]),
    );
    expect(packed.filter((file) => /^(?:src|test|bench|storage|examples)\//.test(file))).toEqual([]);
  });

  test("has a file for every export", () => {
    const targets = (of: unknown): string[] =>
      typeof of === "string" ? [of] : Object.values(of as Record<string, unknown>).flatMap(targets);
    expect(Object.keys(manifest.exports)).toEqual([".", "./tasks", "./files", "./client"]);
    for (const target of targets(manifest.exports)) expect(packed).toContain(target.replace("./", ""));
  });

  test("is used from ESM TypeScript: transfers, tasks and client on the v2 server", async () => {
    const { stdout } = await inProject(process.execPath, ["src/main.ts"]);
    expect(JSON.parse(stdout)).toEqual({
      result: { lines: 20 },
      text: "a\nb\n",
      size: [{ type: "text", text: "4" }],
    });
    expect(existsSync(path.join(folder.path, "storage", "state.sqlite"))).toBe(true);
  });

  test("has types that hold under a strict compiler which reads every declaration", async () => {
    const errors = await compile("main.ts", { module: "nodenext", types: ["node"], skipLibCheck: false });
    // Faults in the declarations of others are theirs; there is none in ours, and none in how they are used.
    expect(errors.split("\n").filter((line) => /^(?:src\/|node_modules\/longshore\/)/.test(line))).toEqual(
      [],
    );
  });

  test("has a client for browsers whose types need nothing of Node", async () => {
    const errors = await compile("browser.ts", {
      module: "esnext",
      moduleResolution: "bundler",
      customConditions: ["browser"],
      lib: ["es2024", "dom"],
      types: [],
      skipLibCheck: false,
    });
    expect(errors).toBe("");
  });

  test("brings the command along", async () => {
    const { stdout } = await inProject(path.join(folder.path, "node_modules/.bin/longshore"), ["--version"]);
    expect(stdout.trim()).toMatch(/^\d+\.\d+\.\d+/);
  });
});
