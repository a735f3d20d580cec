/** Runs the official conformance suite against a server, and judges what it reports against the failures that are expected. */
import { spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** Protocol revisions whose scenarios are run; the tasks extension is among those of the newer. */
export const revisions = ["2026-07-28", "2025-11-25"] as const;
export type Revision = (typeof revisions)[number];

interface Check {
  readonly id: string;
  readonly status: string;
  readonly errorMessage?: string;
}

export interface SuiteReport {
  readonly revision: Revision;
  /** Names of the scenarios that ran. */
  readonly scenarios: readonly string[];
  readonly passed: number;
  /** `scenario/check` of failures that are expected, and failed. */
  readonly expected: readonly string[];
  /** Sentences, one for each fault: a failure that is not expected, an expected one that passed, a scenario that did not run. */
  readonly faults: readonly string[];
}

const suite = fileURLToPath(
  new URL("../../node_modules/@modelcontextprotocol/conformance/dist/index.js", import.meta.url),
);
const expectedFile = new URL("expected-failures.json", import.meta.url);

/** `scenario/check` → why it fails, by revision. */
type Expected = Readonly<Record<Revision, Readonly<Record<string, string>>>>;

export async function runSuite(url: string, revision: Revision): Promise<SuiteReport> {
  const expected = (JSON.parse(await readFile(expectedFile, "utf8")) as Expected)[revision];
  const folder = await mkdtemp(path.join(os.tmpdir(), "longshore-conformance-"));
  try {
    const output = await run(["server", "--url", url, "--requirements", revision, "-o", folder]);
    const announced = [...output.matchAll(/^=== Running scenario: (\S+) ===$/gm)].map(
      ([, name]) => name ?? "",
    );
    return judge(revision, announced, await checksIn(folder), expected, output);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function judge(
  revision: Revision,
  announced: readonly string[],
  checks: ReadonlyMap<string, readonly Check[]>,
  expected: Readonly<Record<string, string>>,
  output: string,
): SuiteReport {
  const faults: string[] = [];
  const failed = new Set<string>();
  let passed = 0;
  if (announced.length === 0) faults.push(`The suite ran no scenario of ${revision}: ${output.slice(-500)}`);
  for (const scenario of announced) {
    const of = checks.get(scenario);
    if (of === undefined) faults.push(`${scenario} did not come to its end.`);
    for (const { id, status, errorMessage } of of ?? []) {
      if (status === "SUCCESS") passed += 1;
      if (status !== "FAILURE") continue;
      const name = `${scenario}/${id}`;
      failed.add(name);
      if (expected[name] === undefined) faults.push(`${name} failed: ${errorMessage ?? "no reason given"}`);
    }
  }
  for (const name of Object.keys(expected)) {
    if (!failed.has(name))
      faults.push(`${name} is expected to fail, and does not: take it out of expected-failures.json.`);
  }
  return {
    revision,
    scenarios: announced,
    passed,
    expected: [...failed].filter((one) => one in expected),
    faults,
  };
}

/** By scenario. The suite makes a folder for each, named after it and the time. */
async function checksIn(folder: string): Promise<Map<string, readonly Check[]>> {
  const found = new Map<string, readonly Check[]>();
  for (const name of await readdir(folder)) {
    const scenario = /^server-(.+)-\d{4}-\d{2}-\d{2}T[\dZ-]+$/.exec(name)?.[1];
    if (scenario === undefined) throw new Error(`unknown result of the suite: ${name}`);
    const text = await readFile(path.join(folder, name, "checks.json"), "utf8");
    found.set(scenario, JSON.parse(text) as Check[]);
  }
  return found;
}

/** The suite's own exit status knows nothing of what is expected here. */
function run(args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [suite, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    }
    child.on("error", reject);
    child.on("close", () => resolve(output));
  });
}
