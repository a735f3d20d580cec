/** The comparison: every workload that is asked for, on every medium that it is for. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describeMachine } from "./machine.ts";
import { findNginx } from "./nginx.ts";
import type { BenchOptions } from "./options.ts";
import { UsageError } from "./options.ts";
import { type Finding, findingOf, findingText, reportHead, writeReport } from "./report.ts";
import { measure } from "./runner.ts";
import { fullScale, quickScale, type Scale } from "./scale.ts";
import { makeSource, makeSparse } from "./source.ts";
import type { AnyWorkload } from "./workload.ts";
import { workloads } from "./workloads/catalogue.ts";
import { freeBytes, type Medium, makeFolder, mediaRoots } from "./workspace.ts";

const isAsked = (name: string, pattern: string): boolean =>
  pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;

export function selectWorkloads(only: readonly string[] | null): readonly AnyWorkload[] {
  for (const pattern of only ?? [])
    if (!workloads.some(({ name }) => isAsked(name, pattern)))
      throw new UsageError(`There is no workload ${pattern}; --list shows them`);
  return workloads.filter(({ name }) => only === null || only.some((pattern) => isAsked(name, pattern)));
}

export function scaleOf({ quick, hugeBytes }: BenchOptions): Scale {
  const scale = quick ? quickScale : fullScale;
  return hugeBytes === null ? scale : { ...scale, hugeBytes };
}

function requireSpace(root: string, bytes: number): void {
  const free = freeBytes(root);
  if (free < bytes)
    throw new UsageError(
      `${root} has ${(free / 2 ** 30).toFixed(1)} GiB free and ${(bytes / 2 ** 30).toFixed(1)} GiB are needed; ` +
        "--disk-dir names another folder, --medium leaves one out",
    );
}

export async function compare(options: BenchOptions): Promise<void> {
  const chosen = selectWorkloads(options.only);
  const scale = scaleOf(options);
  const roots = mediaRoots(options.diskDir);
  const media = options.media.filter((medium) => roots[medium] !== null);
  for (const medium of media) requireSpace(roots[medium] ?? "", scale.freeBytes);
  if (!existsSync(join(import.meta.dirname, "../dist/cli/main.js")))
    throw new UsageError("There is no dist/cli/main.js: run npm run build first");
  const machine = describeMachine(roots);
  console.log(reportHead(machine, options.rounds, options.quick));
  if (findNginx() === null) console.log("nginx is not installed here: (g) is left out.");

  const sourceDir = makeFolder(roots.tmpfs ?? roots.disk);
  const source = makeSource(sourceDir, scale.fileBytes);
  const sparsePath = makeSparse(sourceDir, scale.hugeBytes);
  const results: Finding[] = [];
  const at = new Date().toISOString();
  const startedAt = performance.now();
  // Written after each workload: a run that is broken off has not been for nothing.
  const write = () =>
    writeReport(
      { at, machine, quick: options.quick, rounds: options.rounds, results },
      options.out,
      "compare",
    );

  const measureOn = async (workload: AnyWorkload, medium: Medium): Promise<void> => {
    const root = roots[medium] ?? "";
    if (workload.name === "memory-huge" && freeBytes(root) < scale.hugeBytes * 1.5) {
      console.log(`\n${workload.name}, ${medium}: left out, there is too little room in ${root}`);
      return;
    }
    const context = { scale, source, sparsePath, medium, isWarmUp: false };
    const measured = await measure(workload, options.servers, root, options.rounds, context);
    // All of its servers were left out with --servers.
    if (measured.length === 0) return;
    const finding = findingOf(workload, workload.title(scale), medium, measured);
    results.push(finding);
    console.log(findingText(finding));
    write();
  };
  for (const workload of chosen)
    for (const medium of workload.media) if (media.includes(medium)) await measureOn(workload, medium);
  console.log(`Written to ${write()} after ${Math.round((performance.now() - startedAt) / 1000)} s`);
}
