/**
 * Runs one workload on one medium: all servers up, a warm-up of each, then rounds in which each has its turn. The order moves on by
 * one with each round, so that none is always first or always after the same neighbour.
 */
import { execFileSync } from "node:child_process";
import { type RunningServer, settle, startServer } from "./processes.ts";
import { type ServerId, serverKinds } from "./servers.ts";
import { dropStored } from "./stored-files.ts";
import { cpuSeconds, peakBytes, resetPeak, residentBytes } from "./usage.ts";
import type { AnyWorkload, Outcome, RunContext } from "./workload.ts";

export interface Sample {
  readonly seconds: number;
  /** In the workload's unit. */
  readonly rate: number;
  readonly serverCpuSeconds: number;
  readonly clientCpuSeconds: number;
  /** Memory of a server at rest, just started. */
  readonly idleBytes: number;
  readonly peakBytes: number;
}

export interface Measured {
  readonly server: ServerId;
  readonly samples: readonly Sample[];
}

interface Turn {
  readonly server: RunningServer;
  readonly run: (context: RunContext) => Promise<Outcome>;
}

const rateOf = ({ unit }: AnyWorkload, { seconds, amount }: Outcome): number =>
  unit === "ms" ? (seconds * 1000) / amount : amount / seconds;

async function sampleOf(workload: AnyWorkload, { server, run }: Turn, context: RunContext): Promise<Sample> {
  resetPeak(server.pids);
  const cpuBefore = cpuSeconds(server.pids);
  const outcome = await run(context);
  // What a server does after its answer counts as its work, and must not fall into another's turn.
  await settle(server.pids);
  const serverCpuSeconds = cpuSeconds(server.pids) - cpuBefore;
  const peak = peakBytes(server.pids);
  await outcome.check();
  return {
    seconds: outcome.seconds,
    rate: rateOf(workload, outcome),
    serverCpuSeconds,
    clientCpuSeconds: outcome.clientCpuSeconds,
    idleBytes: server.idleBytes,
    peakBytes: Math.max(peak, residentBytes(server.pids)),
  };
}

/** Removes what the run left, and lets the disk come to rest before somebody else is measured. */
function tidy(server: RunningServer, workload: AnyWorkload, context: RunContext): void {
  if (workload.keepsFiles) return;
  dropStored(server);
  if (context.medium === "disk") execFileSync("sync", ["--file-system", server.dir]);
}

async function openTurn(
  workload: AnyWorkload,
  id: ServerId,
  root: string,
  context: RunContext,
): Promise<Turn | null> {
  const server = await startServer(serverKinds[id], root);
  return server === null ? null : { server, run: await workload.open(server, context) };
}

async function measureRates(
  workload: AnyWorkload,
  ids: readonly ServerId[],
  root: string,
  rounds: number,
  context: RunContext,
) {
  const turns: Turn[] = [];
  const samples = new Map<ServerId, Sample[]>();
  try {
    for (const id of ids) {
      const turn = await openTurn(workload, id, root, context);
      if (turn === null) continue;
      turns.push(turn);
      await turn.run({ ...context, isWarmUp: true });
      await settle(turn.server.pids);
      tidy(turn.server, workload, context);
    }
    for (let round = 0; round < rounds; round += 1) {
      for (let place = 0; place < turns.length; place += 1) {
        const turn = turns[(round + place) % turns.length];
        if (turn === undefined) continue;
        const { id } = turn.server.kind;
        samples.set(id, [...(samples.get(id) ?? []), await sampleOf(workload, turn, context)]);
        tidy(turn.server, workload, context);
      }
    }
  } finally {
    for (const { server } of turns) await server.stop();
  }
  return samples;
}

/** A fresh process for each sample: what an earlier run left in the heap would hide what this one needs. */
async function measureMemory(
  workload: AnyWorkload,
  ids: readonly ServerId[],
  root: string,
  rounds: number,
  context: RunContext,
) {
  const samples = new Map<ServerId, Sample[]>();
  for (let round = 0; round < rounds; round += 1) {
    for (const id of ids) {
      const turn = await openTurn(workload, id, root, context);
      if (turn === null) continue;
      try {
        samples.set(id, [...(samples.get(id) ?? []), await sampleOf(workload, turn, context)]);
        tidy(turn.server, workload, context);
      } finally {
        await turn.server.stop();
      }
    }
  }
  return samples;
}

export async function measure(
  workload: AnyWorkload,
  selected: readonly ServerId[],
  root: string,
  rounds: number,
  context: RunContext,
): Promise<Measured[]> {
  const ids = workload.servers.filter((id) => selected.includes(id) || id === workload.reference);
  const samples =
    workload.memoryRounds === null
      ? await measureRates(workload, ids, root, rounds, context)
      : await measureMemory(workload, ids, root, Math.min(rounds, workload.memoryRounds), context);
  return ids.flatMap((server) => {
    const own = samples.get(server);
    return own === undefined ? [] : [{ server, samples: own }];
  });
}
