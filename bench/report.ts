/** What a run found, as a table for people and as JSON for programs. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Machine, machineLine } from "./machine.ts";
import type { Measured, Sample } from "./runner.ts";
import { serverKinds } from "./servers.ts";
import { median, spread } from "./statistics.ts";
import type { AnyWorkload } from "./workload.ts";
import type { Medium } from "./workspace.ts";

export interface Finding {
  readonly workload: string;
  readonly title: string;
  readonly medium: Medium;
  readonly unit: string;
  readonly reference: string | null;
  readonly servers: readonly {
    readonly server: string;
    readonly label: string;
    readonly rate: number;
    readonly spread: number;
    /** Of the rate to that of the reference. */
    readonly ratio: number | null;
    readonly serverCpuSeconds: number;
    /** The part of one core that the client used: near 1, it is the client that was measured. */
    readonly clientLoad: number;
    readonly idleBytes: number;
    readonly peakBytes: number;
    readonly samples: readonly Sample[];
  }[];
}

const medianOf = (samples: readonly Sample[], pick: (sample: Sample) => number): number =>
  median(samples.map(pick));

export function findingOf(
  workload: AnyWorkload,
  title: string,
  medium: Medium,
  measured: readonly Measured[],
): Finding {
  const referenceSamples = measured.find(({ server }) => server === workload.reference)?.samples;
  const referenceRate =
    referenceSamples === undefined ? null : medianOf(referenceSamples, ({ rate }) => rate);
  return {
    workload: workload.name,
    title,
    medium,
    unit: workload.unit,
    reference: workload.reference,
    servers: measured.map(({ server, samples }) => {
      const rate = medianOf(samples, (sample) => sample.rate);
      return {
        server,
        label: serverKinds[server].label,
        rate,
        spread: spread(samples.map((sample) => sample.rate)),
        ratio: referenceRate === null ? null : rate / referenceRate,
        serverCpuSeconds: medianOf(samples, (sample) => sample.serverCpuSeconds),
        clientLoad: medianOf(samples, (sample) => sample.clientCpuSeconds / sample.seconds),
        idleBytes: medianOf(samples, (sample) => sample.idleBytes),
        peakBytes: Math.max(...samples.map((sample) => sample.peakBytes)),
        samples,
      };
    }),
  };
}

const mb = (bytes: number): string => (bytes / 1e6).toFixed(0);
const percent = (part: number): string => `${(part * 100).toFixed(0)} %`;

/** Columns of text, the first to the left and the others to the right. */
export function tableOf(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? "").length)),
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) =>
          column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
        )
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

export function findingText(finding: Finding): string {
  const head = [
    "server",
    finding.unit,
    "±",
    ...(finding.reference === null ? [] : [`× ${finding.reference}`]),
    "CPU s",
    "idle MB",
    "peak MB",
    "above",
    "client",
  ];
  const rows = finding.servers.map((row) => [
    `(${row.server}) ${row.label}`,
    row.rate >= 100 ? row.rate.toFixed(0) : row.rate.toPrecision(3),
    percent(row.spread),
    ...(finding.reference === null ? [] : [row.ratio?.toFixed(2) ?? ""]),
    row.serverCpuSeconds.toFixed(2),
    mb(row.idleBytes),
    mb(row.peakBytes),
    mb(row.peakBytes - row.idleBytes),
    percent(row.clientLoad),
  ]);
  return `\n${finding.workload}, ${finding.medium}: ${finding.title}\n${tableOf([head, ...rows])}\n`;
}

export interface Report {
  readonly at: string;
  readonly machine: Machine;
  readonly quick: boolean;
  readonly rounds: number;
  readonly results: readonly unknown[];
}

/** @returns where it was written. */
export function writeReport(report: Report, out: string | null, name: string): string {
  const stamp = report.at.replaceAll(/[:.]/g, "-");
  const path = out ?? join(import.meta.dirname, "results", `${name}-${stamp}.json`);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify(report, null, 2)}\n`);
  return path;
}

export function reportHead(machine: Machine, rounds: number, quick: boolean): string {
  const size = quick ? "; quick, so the figures mean little" : "";
  return `${machineLine(machine)}; medians of ${rounds} rounds${size}`;
}
