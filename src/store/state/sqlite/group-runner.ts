/**
 * Runs requests on one connection: reads at once, writes in groups of one transaction each, so that requests that come
 * together share one sync of the disk. Nothing is answered before the commit that holds it.
 *
 * Another process that holds the database is waited for with a timer, never in SQLite, so reads go on meanwhile (readers
 * and the writer do not hinder each other in write-ahead logging). A request whose patience ends while it waits is
 * refused and has changed nothing.
 *
 * Where the disk has no space for a group, those requests of it that free some run again, with the space that is held back for them.
 * The log is moved into the database as soon as that would make it grow by more than what is held back allows: otherwise a disk that
 * becomes full now could not do it any more, and with a log that only grows nothing can be deleted for long.
 */
import type { AnyOperation } from "../operation.ts";
import type { Failure, WorkerReply, WorkerRequest } from "../protocol.ts";
import type { Ballast } from "./ballast.ts";
import { pageBytes, type SqliteConnection } from "./connection.ts";
import { busyFailure, isBusy, isFull, isStorageFault, toFailure } from "./failures.ts";
import { checkVersion } from "./open-database.ts";

const patienceMs = 2_000;
const maxGroup = 256;
/** A transaction takes no further requests after this long: whoever waits for the database gets a turn. */
const maxGroupMs = 20;
/** Nor after it has made the database grow by this much, or by a quarter of the ballast. */
const maxGroupGrowthBytes = 1 << 20;
/** After so many requests it is looked at: 128 KiB, if all of them are small files. */
const growthStride = 8;
/** So many requests share a transaction that has nothing but the ballast: each writes to some ten pages. */
const maxBallastGroup = 16;
/** Without any ballast, what the database has to grow by is kept this small. */
const leastGrowthBytes = 256 << 10;
/** In the space of the ballast another process is waited for in SQLite: left for later, the log would use up that space. */
const ballastWaitMs = 100;
/** A log below this is not worth the work of making it shorter. */
const smallLogBytes = 1 << 20;
/** After this long of one group after the other, others get a gap that their retries can hit. */
const maxRunMs = 25;
const gapMs = 3;

/** Between two tries for a database that is locked: soon, but not all waiting processes at once. */
const retryDelayMs = (): number => 1 + Math.random() ** 2 * 24;

/** `hindered`: by another process, for a moment. */
type Emptied = "emptied" | "hindered" | "no_room";

interface Waiting {
  readonly request: WorkerRequest;
  readonly operation: AnyOperation;
  readonly deadline: number;
}

type Timer =
  | { readonly kind: "soon"; readonly id: NodeJS.Immediate }
  | { readonly kind: "later"; readonly id: NodeJS.Timeout };

export interface GroupRunnerParts {
  readonly connection: SqliteConnection;
  readonly operations: ReadonlyMap<string, AnyOperation>;
  readonly ballast: Ballast;
  send(replies: readonly WorkerReply[], changed: boolean): void;
}

export class GroupRunner {
  readonly #connection: SqliteConnection;
  readonly #operations: ReadonlyMap<string, AnyOperation>;
  readonly #ballast: Ballast;
  readonly #send: GroupRunnerParts["send"];
  #reads: Waiting[] = [];
  #writes: Waiting[] = [];
  #readTimer: Timer | null = null;
  #writeTimer: Timer | null = null;
  #runningSince: number | null = null;
  #dataVersion: unknown = null;
  #othersSeenAt = Number.NEGATIVE_INFINITY;

  constructor(parts: GroupRunnerParts) {
    this.#connection = parts.connection;
    this.#operations = parts.operations;
    this.#ballast = parts.ballast;
    this.#send = parts.send;
  }

  enqueue(requests: readonly WorkerRequest[]): void {
    const deadline = performance.now() + patienceMs;
    for (const request of requests) {
      const operation = this.#operations.get(request.operation);
      if (operation === undefined) {
        this.#refuse([request], toFailure(new Error(`There is no operation ${request.operation}`)));
        continue;
      }
      const isRead = operation.mode === "read" || operation.mode === "snapshot";
      (isRead ? this.#reads : this.#writes).push({ request, operation, deadline });
    }
    this.#schedule();
  }

  /** Immediates run after all messages that have arrived, so they are gathered without waiting for any. */
  #schedule(): void {
    if (this.#reads.length > 0 && this.#readTimer === null) {
      this.#readTimer = { kind: "soon", id: setImmediate(() => this.#runReads()) };
    }
    if (this.#writes.length > 0 && this.#writeTimer === null) {
      this.#writeTimer = { kind: "soon", id: setImmediate(() => this.#runWrites()) };
    }
  }

  /** Of the waiting ones, those that may wait on; the others are refused. */
  #stillPatient(waiting: readonly Waiting[]): Waiting[] {
    const now = performance.now();
    const over = waiting.filter(({ deadline }) => deadline <= now);
    if (over.length === 0) return [...waiting];
    this.#refuse(
      over.map(({ request }) => request),
      busyFailure(),
    );
    return waiting.filter(({ deadline }) => deadline > now);
  }

  #refuse(requests: readonly WorkerRequest[], failure: Failure): void {
    this.#send(
      requests.map(({ id }) => ({ id, failure })),
      false,
    );
  }

  #runReads(): void {
    this.#readTimer = null;
    const group = this.#reads.splice(0, maxGroup);
    const replies: WorkerReply[] = [];
    const hindered: Waiting[] = [];
    // One read is its own transaction; several share one, which spares each the locks.
    const inTransaction = group.length > 1 || group[0]?.operation.mode === "snapshot";
    if (inTransaction) this.#connection.command("BEGIN");
    for (const waiting of group) {
      const { request, operation } = waiting;
      try {
        replies.push({ id: request.id, value: this.#connection.drive(operation, request.args, Date.now()) });
      } catch (error) {
        if (isBusy(error)) hindered.push(waiting);
        else replies.push({ id: request.id, failure: toFailure(error) });
      }
    }
    if (inTransaction) this.#endRead();
    if (replies.length > 0) this.#send(replies, false);
    if (hindered.length > 0) {
      // Only for moments: the first connection after a crash recovers the log, the last one to close removes it.
      this.#reads = [...this.#stillPatient(hindered), ...this.#reads];
      this.#readTimer = { kind: "later", id: setTimeout(() => this.#runReads(), retryDelayMs()) };
    }
    this.#schedule();
  }

  #endRead(): void {
    if (this.#connection.inTransaction) this.#connection.command("ROLLBACK");
  }

  #runWrites(): void {
    this.#writeTimer = null;
    const group = this.#writes.splice(0, maxGroup);
    if (group.length === 0) return;
    const started = performance.now();
    this.#runningSince ??= started;
    const delay = this.#runGroup(group, started);
    if (delay !== null) {
      this.#runningSince = null;
      this.#writeTimer = { kind: "later", id: setTimeout(() => this.#runWrites(), delay) };
    } else if (this.#writes.length === 0) {
      // The next requests may be on their way: a run ends only with a pause.
      setImmediate(() => {
        if (this.#writes.length === 0) this.#runningSince = null;
      });
    }
    this.#schedule();
  }

  /** Null: go on at once; else ms until the next try. `lastly`: the space held back has been given already. */
  #runGroup(group: readonly Waiting[], started: number, lastly = false): number | null {
    const connection = this.#connection;
    const replies: WorkerReply[] = [];
    let changed = false;
    let taken = group.length;
    // What another process has just given up for a deletion is not for others to take.
    if (!lastly && this.#othersAreAbout() && this.#ballast.isLent()) {
      this.#writes = this.#stillPatient([...group, ...this.#writes]);
      return retryDelayMs();
    }
    try {
      connection.command("BEGIN IMMEDIATE");
      checkVersion(connection);
      this.#lookForOthers(started);
      const mostPages = group.length > growthStride ? this.#mostPages() : Number.POSITIVE_INFINITY;
      for (const { request, operation } of group) {
        if (replies.length > 0 && performance.now() - started > maxGroupMs) break;
        if (lastly && replies.length === maxBallastGroup) break;
        if (replies.length > 0 && replies.length % growthStride === 0 && this.#pages() > mostPages) break;
        const reply = this.#runOne(request, operation);
        replies.push(reply);
        if (operation.mode === "write" && "value" in reply) changed = true;
      }
      if (replies.length < taken) {
        taken = replies.length;
        this.#writes = [...group.slice(taken), ...this.#writes];
      }
      connection.command("COMMIT");
    } catch (error) {
      if (connection.inTransaction) connection.command("ROLLBACK");
      // Nothing of it has been acknowledged or kept: all of it runs again, or fails.
      const unanswered = group.slice(0, taken);
      // Another process that had nothing but the ballast either was quicker: soon it is there again.
      const wasTaken = lastly && isFull(error) && this.#othersAreAbout();
      if (!isBusy(error) && !wasTaken) {
        const again = isFull(error) && !lastly ? unanswered.filter(({ operation }) => operation.frees) : [];
        this.#refuse(
          unanswered.filter((one) => !again.includes(one)).map(({ request }) => request),
          toFailure(error),
        );
        return again.length === 0 ? null : this.#runInBallast(again);
      }
      this.#writes = this.#stillPatient([...unanswered, ...this.#writes]);
      return retryDelayMs();
    }
    this.#send(replies, changed);
    if (!lastly) {
      this.#ballast.keep();
      this.#keepGrowthSmall();
    }
    const ranLong = this.#runningSince !== null && performance.now() - this.#runningSince > maxRunMs;
    return ranLong && this.#othersAreAbout() ? gapMs : null;
  }

  /** In one turn, so that others of this process get nothing of the space. */
  #runInBallast(group: readonly Waiting[]): number | null {
    return this.#inBallast((emptied) => {
      if (emptied !== "hindered") return this.#runGroup(group, performance.now(), true);
      this.#writes = this.#stillPatient([...group, ...this.#writes]);
      return retryDelayMs();
    });
  }

  /** The log is emptied before and after: it had at least as much of the disk as the database grows by, so the ballast comes back whole. */
  #inBallast<T>(work: (emptied: Emptied) => T): T {
    this.#ballast.drop();
    this.#connection.checkpointsItself = false;
    try {
      const emptied = this.#emptyLog(ballastWaitMs);
      const wasTaken = emptied === "no_room" && this.#ballast.isTakenBack();
      const result = work(wasTaken ? "hindered" : emptied);
      this.#emptyLog(ballastWaitMs);
      return result;
    } finally {
      this.#connection.checkpointsItself = true;
      this.#ballast.takeBack();
    }
  }

  /** Not where the disk has no room for all of it: what stops half way has used up the space and given nothing back. */
  #emptyLog(waitMs = 0): Emptied {
    if (this.#growthBytes() > this.#ballast.freeBytes()) return "no_room";
    return this.#connection.checkpoint("truncate", waitMs) ? "emptied" : "hindered";
  }

  #keepGrowthSmall(): void {
    const most = Math.max(leastGrowthBytes, this.#ballast.heldBytes / 2);
    if (this.#growthBytes() <= most) return;
    this.#connection.checkpoint("passive");
    // On a disk that is full by now it must not wait: a long log has room of its own, and takes what the ballast could not cover.
    if (this.#growthBytes() > Math.max(most, this.#ballast.freeBytes())) this.#inBallast(() => {});
  }

  #growthBytes(): number {
    try {
      return this.#connection.growthBytes();
    } catch {
      // Whatever is wrong, the next request meets it.
      return 0;
    }
  }

  #pages(): number {
    return Number(this.#connection.pragma("page_count"));
  }

  #mostPages(): number {
    const growth = Math.max(leastGrowthBytes, Math.min(maxGroupGrowthBytes, this.#ballast.heldBytes / 4));
    return this.#pages() + growth / pageBytes;
  }

  /** Gives the space of a long log back to the disk; false where another process was in the way. */
  shortenLog(): boolean {
    if (this.#connection.logBytes < smallLogBytes) return true;
    const emptied = this.#emptyLog();
    return emptied === "no_room"
      ? this.#inBallast((inBallast) => inBallast === "emptied")
      : emptied === "emptied";
  }

  /** A failed operation takes back what it did and no more; a failed medium takes the group with it (throws). */
  #runOne(request: WorkerRequest, operation: AnyOperation): WorkerReply {
    const connection = this.#connection;
    connection.command("SAVEPOINT op");
    try {
      const value = connection.drive(operation, request.args, Date.now());
      connection.command("RELEASE op");
      return { id: request.id, value };
    } catch (error) {
      if (isStorageFault(error) || !connection.inTransaction) throw error;
      connection.command("ROLLBACK TO op");
      connection.command("RELEASE op");
      return { id: request.id, failure: toFailure(error) };
    }
  }

  #othersAreAbout(): boolean {
    return performance.now() - this.#othersSeenAt < 10_000;
  }

  /** SQLite changes `data_version` when another connection has committed. */
  #lookForOthers(now: number): void {
    const version = this.#connection.pragma("data_version");
    if (this.#dataVersion !== null && version !== this.#dataVersion) this.#othersSeenAt = now;
    this.#dataVersion = version;
  }
}
