/**
 * The worker thread that owns a store's connection: a commit takes as long as the disk does, and it must not stand in
 * the way of the bytes. Everything here runs in turns that end; the thread ends by itself once it is told to close.
 */
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import type { AnyOperation } from "./operation.ts";
import type { FromWorker, ToWorker, WorkerReply, WorkerRequest, WorkerSettings } from "./protocol.ts";
import { toFailure } from "./sqlite/failures.ts";
import { spaceOperations } from "./sqlite/free-pages.ts";
import { GroupRunner } from "./sqlite/group-runner.ts";
import { type OpenedState, openDatabase } from "./sqlite/open-database.ts";
import { clearLock, isDead } from "./sqlite/process-lock.ts";
import { taskOperations } from "./tasks/operations.ts";
import { transferOperations } from "./transfers/operations.ts";

/** How often another process's commits are looked for, while somebody wants to know. */
const watchMs = 500;

const groups: Readonly<Record<string, Readonly<Record<string, AnyOperation>>>> = {
  transfers: transferOperations,
  tasks: taskOperations,
  space: spaceOperations,
};

const operations = new Map(
  Object.entries(groups).flatMap(([group, named]) =>
    Object.entries(named).map(([name, operation]) => [`${group}.${name}`, operation] as const),
  ),
);

function serve(
  port: MessagePort,
  settings: WorkerSettings,
  { connection, lock, ballast }: OpenedState,
): void {
  const post = (message: FromWorker): void => port.postMessage(message);
  const runner = new GroupRunner({
    connection,
    operations,
    ballast,
    send: (replies, changed) => post({ kind: "replies", replies, changed }),
  });

  /** What needs no transaction: the locks of processes are files, and the log is emptied between two transactions. */
  const local: Readonly<Record<string, (processId: string) => unknown>> = {
    "liveness.isDead": (processId) => isDead(settings.dataDir, processId),
    "liveness.clear": (processId) => clearLock(settings.dataDir, processId),
    "liveness.keep": () => lock.keep(),
    "space.shortenLog": () => runner.shortenLog(),
  };
  const answer = ({ id, operation, args }: WorkerRequest): WorkerReply => {
    try {
      return { id, value: local[operation]?.(String(args[0])) };
    } catch (error) {
      return { id, failure: toFailure(error) };
    }
  };

  let watch: NodeJS.Timeout | null = null;
  const setWatch = (on: boolean): void => {
    if (watch !== null) clearInterval(watch);
    watch = null;
    if (!on) return;
    // Hindered for a moment (by a process that closes, say), it looks again the next time.
    const look = (): unknown => {
      try {
        return connection.pragma("data_version");
      } catch {
        return null;
      }
    };
    let seen = look();
    watch = setInterval(() => {
      const version = look();
      if (version === null || version === seen) return;
      seen = version;
      post({ kind: "changed" });
    }, watchMs);
  };

  port.on("message", (message: ToWorker) => {
    if (message.kind === "requests") {
      const here = message.requests.filter(({ operation }) => operation in local);
      if (here.length > 0) post({ kind: "replies", replies: here.map(answer), changed: false });
      runner.enqueue(
        here.length === 0
          ? message.requests
          : message.requests.filter(({ operation }) => !(operation in local)),
      );
    } else if (message.kind === "watch") {
      setWatch(message.on);
    } else {
      setWatch(false);
      connection.close();
      lock.release();
      port.close();
    }
  });
}

async function start(port: MessagePort): Promise<void> {
  const settings: WorkerSettings = workerData;
  try {
    const opened = await openDatabase(settings);
    serve(port, settings, opened);
    const { tornLogBytes } = opened;
    port.postMessage({ kind: "ready", tornLogBytes } satisfies FromWorker);
  } catch (error) {
    port.postMessage({ kind: "failed", failure: toFailure(error) } satisfies FromWorker);
    port.close();
  }
}

if (parentPort !== null) await start(parentPort);
