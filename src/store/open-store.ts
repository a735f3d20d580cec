/**
 * A store: state and bytes under one data folder, with the transfer engine over them. Any number of processes may open the same
 * folder at once.
 */
import path from "node:path";
import type { Log } from "../log.ts";
import type { TaskEngine } from "../tasks/engine.ts";
import { createTasks, defaultTaskLimits, type TaskLimits } from "../tasks/tasks.ts";
import { isTight, type Recovery } from "../transfer/care.ts";
import type { SweepReport, TransferEngine, TransferLimits } from "../transfer/engine.ts";
import type { Quota } from "../transfer/state-store.ts";
import { createTransfers } from "../transfer/transfers.ts";
import { openFileBlobs } from "./blobs/file-blobs.ts";
import { openSqliteState } from "./state/sqlite.ts";

export interface StoreOptions {
  readonly dataDir: string;
  /** `always`: what is acknowledged survives a power cut. `never`: for scratch use. */
  readonly fsync: "always" | "never";
  readonly limits: TransferLimits;
  /** What is left out has its default. */
  readonly tasks?: Partial<TaskLimits>;
  readonly quota: Quota;
  /** Below it creating and writing answer `storage_full`. */
  readonly minFreeBytes: number;
  readonly log: Log;
}

export interface Store {
  readonly dataDir: string;
  readonly transfers: TransferEngine;
  readonly tasks: TaskEngine;
  /** What was found of processes that died, and taken over. */
  readonly recovery: Recovery & {
    /** Bytes of a commit that a crash had interrupted (or a disk had lost in part), which were left out of the state. */
    readonly tornLogBytes: number;
  };
  /** Resolves where the state can be written to: it gets the lock for it and changes nothing. Rejects as any write would. */
  probe(): Promise<void>;
  /** One sweep over everything: files first, then tasks. See the engines. */
  sweep(): Promise<SweepReport & { readonly removedTasks: number }>;
  /** Whether the disk is short of space: a sweep then need not wait for its time. */
  isTight(): Promise<boolean>;
  close(): Promise<void>;
}

export async function openStore(options: StoreOptions): Promise<Store> {
  const dataDir = path.resolve(options.dataDir);
  const state = await openSqliteState({ dataDir, fsync: options.fsync });
  const { tornLogBytes } = state;
  if (tornLogBytes > 0) options.log({ level: "warn", event: "store.log_torn", bytes: tornLogBytes });
  try {
    const blobs = openFileBlobs({ dir: path.join(dataDir, "blobs"), fsync: options.fsync });
    const { transfers, recovery } = await createTransfers({
      state: state.transfers,
      changes: state.changes,
      liveness: state.liveness,
      blobs,
      limits: options.limits,
      quota: options.quota,
      minFreeBytes: options.minFreeBytes,
      log: options.log,
    });
    const tasks = createTasks({
      state: state.tasks,
      signs: state.transfers,
      changes: state.changes,
      liveness: state.liveness,
      transfers,
      limits: { ...defaultTaskLimits, ...options.tasks },
      log: options.log,
    });
    return {
      dataDir,
      transfers,
      tasks,
      recovery: { ...recovery, tornLogBytes },
      probe: () => state.transfers.forgetGarbage([]),
      sweep: async () => ({ ...(await transfers.sweep()), ...(await tasks.sweep()) }),
      isTight: async () => isTight(await blobs.freeBytes(), options.minFreeBytes),
      async close() {
        // Handlers read and write files, so they end first.
        await tasks.close();
        await transfers.close();
        await state.close();
      },
    };
  } catch (error) {
    await state.close();
    throw error;
  }
}
