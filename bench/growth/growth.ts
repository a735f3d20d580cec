/** `npm run bench -- growth`: the time of each operation on stores of different size, and its ratio to that on the smallest. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { runProgram, sendRequests } from "../client.ts";
import { createHead, headHead, patchHead } from "../http-text.ts";
import { describeMachine } from "../machine.ts";
import type { BenchOptions } from "../options.ts";
import { type RunningServer, settle, startServer } from "../processes.ts";
import { reportHead, tableOf, writeReport } from "../report.ts";
import { serverKinds } from "../servers.ts";
import { makeSource, readSlice } from "../source.ts";
import { median } from "../statistics.ts";
import { freeBytes, makeFolder, mediaRoots } from "../workspace.ts";
import { databaseOf, type FilledStore, fillStore } from "./fill.ts";

const fullRecords = [1_000, 100_000, 1_000_000];
const quickRecords = [1_000, 10_000];
const patchBytes = 1_024;

/** Milliseconds of one operation, by its name. */
type Times = Readonly<Record<string, number>>;

interface Subject {
  readonly store: FilledStore;
  readonly server: RunningServer;
  /** How often each of its receiving uploads has been appended to. */
  appended: number;
  readonly rounds: Times[];
}

const probeResult = z.record(z.string(), z.number());

async function msEach(
  server: RunningServer,
  connections: number,
  turns: number,
  requests: readonly string[],
  expect: number,
) {
  const result = await sendRequests({
    port: server.port,
    connections,
    requests,
    followUp: null,
    expect,
    expectFollowUp: 0,
    turns,
    durationMs: Number.MAX_SAFE_INTEGER,
  });
  await settle(server.pids);
  return (result.seconds * 1000) / result.turns;
}

/** One round of requests, one at a time and 16 at once. */
async function timeRequests(subject: Subject, turns: number, body: string): Promise<Times> {
  const { server, store } = subject;
  const times: Record<string, number> = {};
  for (const connections of [1, 16]) {
    const name = (operation: string): string => `${operation}, ${connections} at a time`;
    const create = [createHead(1_000)];
    times[name("create")] = await msEach(server, connections, turns, create, 201);
    times[name("HEAD")] = await msEach(server, connections, turns, store.samplePaths.map(headHead), 200);
    // As many to each upload: all stores do the same work, on uploads that lie all over the store.
    const laps = Math.ceil(turns / store.receivingPaths.length);
    const patches = Array.from({ length: laps }, (_, lap) =>
      store.receivingPaths.map(
        (path) => patchHead(path, (subject.appended + lap) * patchBytes, patchBytes) + body,
      ),
    ).flat();
    times[name("PATCH")] = await msEach(server, connections, patches.length, patches, 204);
    subject.appended += laps;
  }
  return times;
}

async function probeStore({ dir }: FilledStore): Promise<Times> {
  const dataDir = join(databaseOf(dir), "..");
  const probe = fileURLToPath(new URL("./store-probe.ts", import.meta.url));
  return probeResult.parse(await runProgram(process.execPath, [probe, dataDir], null));
}

const label = (name: string): string =>
  ({
    open: "open the store",
    list: "list, first page",
    listMiddle: "list, page in the middle",
    listStatus: "list by status, page in the middle",
    sweepFirst: "sweep, the first of a process",
    sweepNothing: "sweep, nothing due",
    sweepDue: "sweep, 200 records due",
  })[name] ?? name;

const mediansOf = (rounds: readonly Times[]): Times =>
  Object.fromEntries(
    Object.keys(rounds[0] ?? {}).map((name) => [
      name,
      median(rounds.map((times) => times[name] ?? Number.NaN)),
    ]),
  );

function growthText(stores: readonly { readonly records: number; readonly times: Times }[]): string {
  const [smallest] = stores;
  const head = [
    "ms",
    ...stores.flatMap(({ records }, index) => [records.toLocaleString("en"), ...(index > 0 ? ["×"] : [])]),
  ];
  const rows = Object.keys(smallest?.times ?? {}).map((name) => [
    label(name),
    ...stores.flatMap(({ times }, index) => {
      const value = times[name] ?? Number.NaN;
      const ratio = value / (smallest?.times[name] ?? Number.NaN);
      return [value.toPrecision(3), ...(index > 0 ? [ratio.toFixed(2)] : [])];
    }),
  ]);
  return `\n${tableOf([head, ...rows])}\n`;
}

export async function growth(options: BenchOptions): Promise<void> {
  const sizes = (options.records ?? (options.quick ? quickRecords : fullRecords)).toSorted((a, b) => a - b);
  const turns = options.quick ? 200 : 2_000;
  const roots = mediaRoots(options.diskDir);
  const medium = options.media.includes("disk") || roots.tmpfs === null ? "disk" : "tmpfs";
  const root = roots[medium] ?? roots.disk;
  const machine = describeMachine(roots);
  console.log(`${reportHead(machine, options.rounds, options.quick)}; on ${medium}`);
  const needed = 2 ** 30 + sizes.reduce((sum, records) => sum + records * 3_000, 0);
  if (freeBytes(root) < needed) throw new Error(`${root} has too little room: ${needed} bytes are needed`);
  const at = new Date().toISOString();
  const source = makeSource(makeFolder(root), 1 << 20);
  const body = readSlice(source, 0, patchBytes).toString("latin1");

  const subjects: Subject[] = [];
  const rounds: Times[][] = [];
  try {
    for (const records of sizes) {
      const startedAt = performance.now();
      const store = await fillStore(root, records, source);
      console.log(
        `${records.toLocaleString("en")} records filled in ${Math.round((performance.now() - startedAt) / 1000)} s`,
      );
      const server = await startServer(serverKinds.a, root, { dir: store.dir, keep: true });
      if (server !== null) subjects.push({ store, server, appended: 0, rounds: [] });
    }
    // The first round is the warm-up.
    for (let round = 0; round <= options.rounds; round += 1)
      for (const subject of subjects) {
        const times = await timeRequests(subject, round === 0 ? 400 : turns, body);
        if (round > 0) subject.rounds.push(times);
      }
  } finally {
    for (const { server } of subjects) await server.stop();
  }
  for (let round = 0; round < options.rounds; round += 1) {
    const probed: Times[] = [];
    for (const { store } of subjects) probed.push(await probeStore(store));
    rounds.push(probed);
  }
  const results = subjects.map(({ store, rounds: own }, index) => ({
    records: store.records,
    times: { ...mediansOf(own), ...mediansOf(rounds.map((probed) => probed[index] ?? {})) },
    rounds: own,
    probes: rounds.map((probed) => probed[index]),
  }));
  console.log(growthText(results));
  console.log(
    `Written to ${writeReport({ at, machine, quick: options.quick, rounds: options.rounds, results }, options.out, "growth")}`,
  );
}
