/** The command line of the benchmark. */
import { parseArgs } from "node:util";
import { type ServerId, serverIds } from "./servers.ts";
import type { Medium } from "./workspace.ts";

export const usage = `npm run bench -- [options]           uploads, downloads and calls against other servers; tasks
npm run bench -- growth [options]    the same operations on stores of different size

  --rounds N           rounds of each workload, medians are shown (default 5)
  --only A,B           workloads by name; a name may end in *; --list shows them
  --servers a,c        servers by letter; the one that ratios refer to is always there
  --medium WHERE       tmpfs, disk or both (default both)
  --disk-dir FOLDER    where "disk" is (default: the folder for temporary files)
  --huge-bytes N       size of the largest upload (default 10 GiB)
  --records A,B        growth: sizes of the stores (default 1000,100000,1000000)
  --out FILE           where the JSON goes (default below bench/results)
  --quick              small sizes, 2 rounds, tmpfs: to try the harness; its figures mean little
  --list               names the workloads and ends
  --help               this text`;

export interface BenchOptions {
  readonly command: "compare" | "growth";
  readonly rounds: number;
  readonly only: readonly string[] | null;
  readonly servers: readonly ServerId[];
  readonly media: readonly Medium[];
  readonly diskDir: string | null;
  readonly hugeBytes: number | null;
  readonly records: readonly number[] | null;
  readonly out: string | null;
  readonly quick: boolean;
  readonly list: boolean;
  readonly help: boolean;
}

export class UsageError extends Error {
  override readonly name = "UsageError";
}

function readCount(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new UsageError(`--${name} takes a whole number, not ${text}`);
  return value;
}

function readServers(text: string): ServerId[] {
  return text.split(",").map((given) => {
    const found = serverIds.find((id) => id === given.trim());
    if (found === undefined)
      throw new UsageError(`There is no server ${given}; there are ${serverIds.join(", ")}`);
    return found;
  });
}

function readMedia(text: string): Medium[] {
  if (text === "both") return ["tmpfs", "disk"];
  if (text === "tmpfs" || text === "disk") return [text];
  throw new UsageError(`--medium takes tmpfs, disk or both, not ${text}`);
}

function readCommand(words: readonly string[]): BenchOptions["command"] {
  const [word = "compare", ...more] = words;
  if ((word !== "growth" && word !== "compare") || more.length > 0)
    throw new UsageError(`There is no benchmark ${words.join(" ")}`);
  return word;
}

/** Throws `UsageError`. */
export function readOptions(args: readonly string[]): BenchOptions {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(args);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
  const { values, positionals } = parsed;
  const quick = values.quick ?? false;
  return {
    command: readCommand(positionals),
    rounds: values.rounds === undefined ? (quick ? 2 : 5) : readCount("rounds", values.rounds),
    only: values.only?.split(",").map((name) => name.trim()) ?? null,
    servers: values.servers === undefined ? serverIds : readServers(values.servers),
    media: readMedia(values.medium ?? (quick ? "tmpfs" : "both")),
    diskDir: values["disk-dir"] ?? null,
    hugeBytes: values["huge-bytes"] === undefined ? null : readCount("huge-bytes", values["huge-bytes"]),
    records: values.records?.split(",").map((count) => readCount("records", count)) ?? null,
    out: values.out ?? null,
    quick,
    list: values.list ?? false,
    help: values.help ?? false,
  };
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      rounds: { type: "string" },
      only: { type: "string" },
      servers: { type: "string" },
      medium: { type: "string" },
      "disk-dir": { type: "string" },
      "huge-bytes": { type: "string" },
      records: { type: "string" },
      out: { type: "string" },
      quick: { type: "boolean" },
      list: { type: "boolean" },
      help: { type: "boolean" },
    },
  });
}
