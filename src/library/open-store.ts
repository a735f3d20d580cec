/**
 * A store as the library opens it: the engines over one data folder, with a default for every limit, and the care that a server takes of
 * it. Files, state, workers and handlers belong to it, and end with it.
 */

import type { Log } from "../log.ts";
import { createLogger } from "../server/log.ts";
import { settings } from "../server/settings.ts";
import { startSweepTimer } from "../server/sweep-timer.ts";
import { type Store as FolderStore, openStore as openFolder } from "../store/open-store.ts";

/**
 * What is left out has the default of a server, which `longshore serve --help` tells.
 *
 * @example
 * const options: OpenStoreOptions = { dataDir: "./storage", quotaBytes: 10e9, taskConcurrency: 4 };
 */
export interface OpenStoreOptions {
  /** Folder for state and files; made where there is none. Any number of processes may use one at once. */
  readonly dataDir: string;
  /** `always` (the default): what is acknowledged survives a power cut. `never`: for scratch use. */
  readonly fsync?: "always" | "never";
  readonly maxFileBytes?: number;
  /** For each principal; null (the default): none. */
  readonly quotaBytes?: number | null;
  readonly quotaFiles?: number | null;
  /** Below it creating and writing answer `storage_full`. */
  readonly minFreeBytes?: number;
  /** An unfinished upload expires this long after its last byte. */
  readonly uploadTtlMs?: number;
  /** A finished file expires this long after its completion; null (the default): never. */
  readonly fileTtlMs?: number | null;
  readonly downloadTtlMs?: number;
  /** Limits of `upload_write`. */
  readonly inlineChunkBytes?: number;
  readonly inlineFileBytes?: number;
  /** An ended task is kept this long. */
  readonly taskTtlMs?: number;
  /** Handlers of this process that run at once; waiting ones not counted. */
  readonly taskConcurrency?: number;
  /** Hosts, addresses and networks from which `file_import` may fetch beyond the public internet, where it is offered. */
  readonly allowImport?: readonly string[];
  /** Folders, absolute, from which it may take `file:` URLs. */
  readonly importRoots?: readonly string[];
  /** Told what happens; by default warnings and errors go to stderr as lines of JSON. */
  readonly log?: Log;
}

/**
 * Files and tasks under one folder; from {@link openStore}.
 *
 * @example
 * const store: Store = await openStore("./storage");
 * const { task } = await store.tasks.start("local", { kind: "crawl-site", args: { url } });
 */
export interface Store extends Pick<FolderStore, "dataDir" | "transfers" | "tasks"> {
  readonly log: Log;
  /** From where `file_import` may take files. */
  readonly imports: Required<Pick<OpenStoreOptions, "allowImport" | "importRoots">>;
  /**
   * Ends what runs: writes commit what they have, handlers stop, and their tasks go on in another process or at the next start. The process
   * can end by itself afterwards, and does not before.
   */
  close(): Promise<void>;
}

/**
 * Opens the store in a folder.
 *
 * @param where the folder, or options with `dataDir`.
 * @throws TypeError for a URL: other backends than a folder are not there yet.
 * @example
 * const store = await openStore("./storage");
 * const scratch = await openStore({ dataDir: "/tmp/scratch", fsync: "never", maxFileBytes: 1e9 });
 */
export async function openStore(where: string | OpenStoreOptions): Promise<Store> {
  const options = typeof where === "string" ? { dataDir: where } : where;
  const { dataDir } = options;
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(dataDir))
    throw new TypeError(
      `openStore takes a folder; stores behind URLs (${dataDir.slice(0, dataDir.indexOf(":"))}:) are not there yet.`,
    );
  const log = options.log ?? createLogger("warn").log;
  const { taskTtlMs, taskConcurrency, allowImport = [], importRoots = [] } = options;
  const store = await openFolder({
    dataDir,
    fsync: options.fsync ?? "always",
    limits: {
      maxFileBytes: options.maxFileBytes ?? settings.maxFileBytes.fallback,
      inlineChunkBytes: options.inlineChunkBytes ?? settings.inlineChunkBytes.fallback,
      inlineFileBytes: options.inlineFileBytes ?? settings.inlineFileBytes.fallback,
      uploadTtlMs: options.uploadTtlMs ?? settings.uploadTtl.fallback,
      fileTtlMs: options.fileTtlMs ?? settings.fileTtl.fallback,
      downloadTtlMs: options.downloadTtlMs ?? settings.downloadTtl.fallback,
    },
    tasks: {
      ...(taskTtlMs !== undefined && { taskTtlMs }),
      ...(taskConcurrency !== undefined && { concurrency: taskConcurrency }),
    },
    quota: { maxBytes: options.quotaBytes ?? null, maxFiles: options.quotaFiles ?? null },
    minFreeBytes: options.minFreeBytes ?? settings.minFreeBytes.fallback,
    log,
  });
  const { transfers, tasks } = store;
  const sweeps = startSweepTimer({
    sweep: () => store.sweep(),
    isTight: () => store.isTight(),
    log,
  });
  let closed: Promise<void> | undefined;
  return {
    dataDir: store.dataDir,
    transfers,
    tasks,
    log,
    imports: { allowImport, importRoots },
    close() {
      closed ??= Promise.all([sweeps.stop(), store.close()]).then(() => {});
      return closed;
    },
  };
}
