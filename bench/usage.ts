/** What a server process and its children have used, from `/proc`: CPU seconds, and memory now and at its peak. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

/** USER_HZ: 100 on every Linux that Node runs on. */
const ticksPerSecond = 100;

interface Stat {
  readonly parent: number;
  readonly cpuSeconds: number;
}

function statOf(pid: number): Stat | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name of the program, in parentheses, may hold anything.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return {
      parent: Number(fields[1]),
      cpuSeconds: (Number(fields[11]) + Number(fields[12])) / ticksPerSecond,
    };
  } catch {
    return null;
  }
}

/** The process and those it started, without their own children: servers here are at most a master with workers. */
export function familyOf(pid: number): number[] {
  const children = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((other) => statOf(other)?.parent === pid);
  return [pid, ...children];
}

export function cpuSeconds(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + (statOf(pid)?.cpuSeconds ?? 0), 0);
}

function memoryField(pid: number, field: "VmRSS" | "VmHWM"): number {
  try {
    const text = readFileSync(`/proc/${pid}/status`, "latin1");
    return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

export function residentBytes(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + memoryField(pid, "VmRSS"), 0);
}

/** Since `resetPeak`, or since the process began where the kernel does not allow to reset it. */
export function peakBytes(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + memoryField(pid, "VmHWM"), 0);
}

export function resetPeak(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      writeFileSync(`/proc/${pid}/clear_refs`, "5");
    } catch {
      // Then the peak is that of the whole life of the process, which is no less.
    }
  }
}
