/** The Node that runs the tests is the one that the project promises and pins, whatever the machine has. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

interface Manifest {
  readonly engines: { readonly node: string };
  readonly devDependencies: Readonly<Record<string, string>>;
}

const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as Manifest;
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
