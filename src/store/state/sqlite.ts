/**
 * The state store on SQLite: `state.sqlite` in the data folder, which any number of processes of one machine may open at
 * once. Beside it lie `state.lock.sqlite` (held while opening), `processes/` (one lock for each process) and `FORMAT`.
 */
import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { TaskState } from "../../tasks/state-store.ts";
import type { ChangeFeed, Liveness, TransferState } from "../../transfer/state-store.ts";
import { WorkerClient } from "./worker-client.ts";

export interface SqliteStateOptions {
  /** Made where it is not there. */
  readonly dataDir: string;
  /** `always`: a method that has resolved is on the disk. `never`: for scratch use; a power cut may lose or spoil everything. */
  readonly fsync: "always" | "never";
  /** Told of faults that no caller waits for, such as the death of the worker. */
  readonly report?: (fault: Error) => void;
}

export interface SqliteState {
  readonly transfers: TransferState;
  readonly tasks: TaskState;
  readonly changes: ChangeFeed;
  readonly liveness: Liveness;
  /** Bytes of an unfinished or spoiled commit that were found at the end of the log, and left out; 0 as a rule. */
  readonly tornLogBytes: number;
  /** Waits for what was asked before, takes this process out of the store, and lets go of every file. */
  close(): Promise<void>;
}

/** An emptied log can be given back only while no other process reads: short moments. */
const shortenTries = 20;
const shortenDelayMs = 25;

const transferMethods: Readonly<Record<keyof Omit<TransferState, "giveBackSpace">, true>> = {
  createUpload: true,
  concatenate: true,
  findByTicket: true,
  findDownload: true,
  findUpload: true,
  listUploads: true,
  completeUploads: true,
  segments: true,
  addTicket: true,
  startOver: true,
  removeUpload: true,
  beginWrite: true,
  commitWrite: true,
  storeSmall: true,
  smallFile: true,
  releaseWrite: true,
  requestLease: true,
  refuseLease: true,
  leaseRequests: true,
  settle: true,
  claimVerifications: true,
  orphans: true,
  idleUploads: true,
  adoptOrphan: true,
  replaceSegments: true,
  announceBlob: true,
  expire: true,
  garbage: true,
  garbageLeft: true,
  forgetGarbage: true,
  unknownBlobs: true,
  addGarbage: true,
  removeStaleTickets: true,
  registerProcess: true,
  heartbeat: true,
  processes: true,
  removeProcess: true,
  usage: true,
};

const taskMethods: Readonly<Record<keyof TaskState, true>> = {
  createTask: true,
  findTask: true,
  listTasks: true,
  taskVersions: true,
  answerTask: true,
  cancelTask: true,
  outlook: true,
  claimTasks: true,
  takeBack: true,
  heldTasks: true,
  takeAnswers: true,
  recordedSteps: true,
  stepResult: true,
  enterStep: true,
  endStep: true,
  askQuestion: true,
  setProgress: true,
  releaseTask: true,
  finishTask: true,
  sweepTasks: true,
};

/** A store whose methods are operations of the worker, under the names of its interface. */
function remote<Store extends object>(
  client: WorkerClient,
  group: string,
  methods: Readonly<Record<keyof Store & string, true>>,
): Store {
  const entries = Object.keys(methods).map((name) => [
    name,
    (...args: unknown[]) => client.call(`${group}.${name}`, args),
  ]);
  // Both this list and the worker's operations are held to the interface by their types: a name that is missing does not compile.
  return Object.fromEntries(entries) as Store;
}

/**
 * Opens the state in `dataDir`, bringing it to this version's schema.
 *
 * Throws TransferError `storage_unavailable` (not retryable where the folder is of another format or a newer version)
 * or `storage_full`.
 */
export async function openSqliteState({
  dataDir,
  fsync,
  report = () => {},
}: SqliteStateOptions): Promise<SqliteState> {
  const processId = `p_${randomBytes(16).toString("hex")}`;
  const client = await WorkerClient.open({ dataDir: resolve(dataDir), fsync, processId }, report);
  const operations = remote<Omit<TransferState, "giveBackSpace">>(client, "transfers", transferMethods);

  const transfers: TransferState = {
    ...operations,
    async heartbeat(id) {
      await operations.heartbeat(id);
      if (id === processId) await client.call("liveness.keep", [id]);
    },
    async removeProcess(id) {
      await operations.removeProcess(id);
      // Its own lock stays for as long as the store is open.
      if (id !== processId) await client.call("liveness.clear", [id]);
    },
    async giveBackSpace(all) {
      if ((await client.call("space.freePages", [all])) === true) return true;
      for (let tries = 0; tries < shortenTries; tries += 1) {
        if ((await client.call("space.shortenLog", [])) === true) break;
        await sleep(shortenDelayMs);
      }
      return false;
    },
  };
  const liveness: Liveness = {
    processId,
    async isDead(id) {
      return id !== processId && (await client.call("liveness.isDead", [id])) === true;
    },
  };
  return {
    transfers,
    tasks: remote<TaskState>(client, "tasks", taskMethods),
    changes: { subscribe: (onChange) => client.subscribe(onChange) },
    liveness,
    tornLogBytes: client.tornLogBytes,
    close: () => client.close(() => operations.removeProcess(processId)),
  };
}
