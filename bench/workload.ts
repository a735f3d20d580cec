/** What a workload is to the runner: which servers it compares, and one run of it on one of them. */
import type { RunningServer } from "./processes.ts";
import type { Scale } from "./scale.ts";
import type { ServerId } from "./servers.ts";
import type { Source } from "./source.ts";
import type { Medium } from "./workspace.ts";

export interface RunContext {
  readonly scale: Scale;
  readonly source: Source;
  /** A sparse file of `scale.hugeBytes`. */
  readonly sparsePath: string;
  readonly medium: Medium;
  /** A run before the first round, to warm up: a tenth of the work is enough. */
  readonly isWarmUp: boolean;
}

export interface Outcome {
  readonly seconds: number;
  /** Of `unit`: bytes in MB, requests, tasks; where the unit is ms, how many times the thing was done. */
  readonly amount: number;
  readonly clientCpuSeconds: number;
  /** Throws where the server has not done what it acknowledged. Runs after the measurement. */
  readonly check: () => Promise<void> | void;
}

export interface Workload<State> {
  readonly name: string;
  readonly title: (scale: Scale) => string;
  readonly servers: readonly ServerId[];
  readonly media: readonly Medium[];
  /** Whom ratios refer to; null where nobody else promises the same, so that there are none. */
  readonly reference: ServerId | null;
  /** What is done in a second, or the ms that it takes each time. */
  readonly unit: "MB/s" | "files/s" | "requests/s" | "tasks/s" | "steps/s" | "ms";
  /** Memory is what is measured: a fresh process for each round, and no more rounds than this. */
  readonly memoryRounds: number | null;
  /** Once for each server, before the first round. */
  readonly prepare: (server: RunningServer, context: RunContext) => Promise<State>;
  readonly run: (server: RunningServer, context: RunContext, state: State) => Promise<Outcome>;
}

/** A workload whose runs keep their state to themselves. */
export interface AnyWorkload extends Omit<Workload<unknown>, "prepare" | "run"> {
  readonly open: (
    server: RunningServer,
    context: RunContext,
  ) => Promise<(context: RunContext) => Promise<Outcome>>;
  readonly keepsFiles: boolean;
}

export function workload<State>(given: Workload<State> & { readonly keepsFiles: boolean }): AnyWorkload {
  const { prepare, run, ...rest } = given;
  return {
    ...rest,
    open: async (server, context) => {
      const state = await prepare(server, context);
      return (current) => run(server, current, state);
    },
  };
}
