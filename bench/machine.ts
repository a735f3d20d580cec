/** The machine that was measured, named by what matters for the figures and by nothing that would tell whose it is. */
import { execFileSync } from "node:child_process";
import { cpus, release, totalmem } from "node:os";
import type { MediaRoots } from "./workspace.ts";

export interface Machine {
  readonly cores: number;
  readonly processor: string;
  readonly memoryGib: number;
  readonly kernel: string;
  readonly node: string;
  /** Type of the file system on which "disk" is measured. */
  readonly diskFileSystem: string;
}

function fileSystemOf(path: string): string {
  try {
    return execFileSync("stat", ["--file-system", "--format=%T", path], { encoding: "utf8" }).trim();
  } catch {
    return "unknown";
  }
}

export function describeMachine(roots: MediaRoots): Machine {
  return {
    cores: cpus().length,
    processor: cpus()[0]?.model.trim() ?? "unknown",
    memoryGib: Math.round(totalmem() / 2 ** 30),
    kernel: `${process.platform} ${release().split("-")[0]}`,
    node: process.version,
    diskFileSystem: fileSystemOf(roots.disk),
  };
}

export function machineLine(machine: Machine): string {
  const { cores, processor, memoryGib, kernel, node, diskFileSystem } = machine;
  return `${cores} cores (${processor}), ${memoryGib} GiB, ${kernel}, Node ${node}, disk ${diskFileSystem}`;
}
