/** The Node that runs the tests is the one that the project promises and pins, whatever the machine has; installing warns of nothing. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

interface Manifest {
  readonly engines: { readonly node: string };
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly allowScripts: Readonly<Record<string, boolean>>;
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly hasInstallScript?: boolean }>>;
}

const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as Manifest;
const lock = JSON.parse(readFileSync(new URL("../package-lock.json", import.meta.url), "utf8")) as Lock;
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);

test("the running Node is 22.18 or newer, as package.json promises", () => {
  expect(manifest.engines.node).toBe(">=22.18");
  expect(major > 22 || (major === 22 && minor >= 18), `Node ${process.versions.node} is too old`).toBe(true);
});

test("under an npm script the running Node is the pinned one, major 24", () => {
  expect(manifest.devDependencies.node).toMatch(/^24\.\d+\.\d+$/);
  if (process.env.npm_lifecycle_event === undefined) return;
  expect(process.versions.node).toBe(manifest.devDependencies.node);
});

test("each dependency with an install script is decided on in allowScripts, so that npm ci has nothing to warn of", () => {
  const withScript = Object.entries(lock.packages)
    .filter(([, { hasInstallScript }]) => hasInstallScript === true)
    .map(([folder]) => folder.slice(folder.lastIndexOf("node_modules/") + "node_modules/".length));
  expect(Object.keys(manifest.allowScripts).sort()).toEqual([...new Set(withScript)].sort());
});
