/**
 * One SQLite connection, and how it drives operations: each in one synchronous turn, over statements that are prepared
 * once. It never waits for another connection: what finds the database locked throws at once, and who retries and for
 * how long is decided elsewhere.
 */
import { statSync } from "node:fs";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from "kysely";
import type { AnyOperation, Query, QueryResult } from "../operation.ts";
import type { StateTables } from "../schema.ts";
import { isBusy, isStorageFault } from "./failures.ts";

/** Builds queries for SQLite and runs none. */
export const sqliteQueries = new Kysely<StateTables>({
  dialect: {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  },
});

/** Pages of the index trees that stay in memory: with SQLite's 2 MiB a store of a million records reads for each insert. */
const cacheKib = 16_384;
/** Pages in the log before they are moved into the database (16 MiB): fewer, longer checkpoints. */
const checkpointPages = 4_000;
const maxLogBytes = 64 * 1024 * 1024;
/** SQLite's default, in which all databases of this house are made. */
export const pageBytes = 4096;

interface Statement {
  readonly sync: StatementSync;
  readonly returnsRows: boolean;
}

export type TransactionCommand = "BEGIN" | "BEGIN IMMEDIATE" | "COMMIT" | "ROLLBACK" | SavepointCommand;
type SavepointCommand = "SAVEPOINT op" | "RELEASE op" | "ROLLBACK TO op";

export class SqliteConnection {
  readonly #path: string;
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, Statement>();

  /** The file must be there. */
  constructor(path: string, fsync: "always" | "never") {
    this.#path = path;
    this.#database = new DatabaseSync(path, { timeout: 0, enableForeignKeyConstraints: true });
    // Pages that become free can be given back to the disk: for ever, and only where it is said before the first table.
    if (statSync(path).size === 0) this.#database.exec("PRAGMA auto_vacuum = INCREMENTAL");
    // fullfsync matters on macOS only, where a plain fsync does not reach the disk.
    this.#database.exec(`
      PRAGMA synchronous = ${fsync === "always" ? "FULL" : "OFF"};
      PRAGMA fullfsync = ${fsync === "always" ? 1 : 0};
      PRAGMA temp_store = MEMORY;
      PRAGMA cache_size = -${cacheKib};
      PRAGMA wal_autocheckpoint = ${checkpointPages};
      PRAGMA journal_size_limit = ${maxLogBytes};
    `);
  }

  get inTransaction(): boolean {
    return this.#database.isTransaction;
  }

  command(text: TransactionCommand): void {
    this.#statement(text).sync.run();
  }

  /** Any SQL without parameters or results: for migrations. */
  exec(sql: string): void {
    this.#database.exec(sql);
  }

  pragma(name: "user_version" | "data_version" | "journal_mode" | "page_count"): unknown {
    return this.#statement(`PRAGMA ${name}`).sync.get()?.[name];
  }

  /** By how much the file will grow when the log is moved into it: bytes that the disk must still have then. */
  growthBytes(): number {
    return Math.max(0, Number(this.pragma("page_count")) * pageBytes - statSync(this.#path).size);
  }

  get logBytes(): number {
    return statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** Whether commits move the log into the file by themselves when it has become long. */
  set checkpointsItself(on: boolean) {
    this.#database.exec(`PRAGMA wal_autocheckpoint = ${on ? checkpointPages : 0}`);
  }

  /**
   * Moves the log into the file, as far as no other connection is in the way; `truncate`: and gives its space back. False where
   * something is left to do. Outside of transactions only. `waitMs`: for others, in SQLite and so for everybody here.
   */
  checkpoint(how: "passive" | "truncate", waitMs = 0): boolean {
    if (waitMs > 0) this.#database.exec(`PRAGMA busy_timeout = ${waitMs}`);
    try {
      const { sync } = this.#statement(`PRAGMA wal_checkpoint(${how})`);
      return sync.get()?.busy === 0;
    } catch (error) {
      if (isBusy(error) || isStorageFault(error)) return false;
      throw error;
    } finally {
      if (waitMs > 0) this.#database.exec("PRAGMA busy_timeout = 0");
    }
  }

  /** Runs the operation to its end. It may change something only if its mode says so. */
  drive(operation: AnyOperation, args: readonly unknown[], now: number): unknown {
    const { mode } = operation;
    const mayChange = mode === "write" || mode === "housekeeping";
    // Caller and operation agree on the arguments by the interface of the store; in between they are just values.
    const steps = operation.run({ db: sqliteQueries, now }, ...(args as never[]));
    let queries = 0;
    let step = steps.next();
    while (step.done !== true) {
      queries += 1;
      if (!mayChange && !step.value.reads)
        throw new Error(`A reading operation would write: ${step.value.sql}`);
      if (mode === "read" && queries > 1) throw new Error(`Not one read: ${step.value.sql}`);
      step = steps.next(this.#execute(step.value));
    }
    return step.value;
  }

  close(): void {
    this.#statements.clear();
    this.#database.close();
  }

  #execute(query: Query): QueryResult {
    const statement = query.kept ? this.#statement(query.sql) : this.#prepare(query.sql);
    // Queries are built from strings, numbers and null alone (see the tables).
    const parameters = query.parameters as readonly SQLInputValue[];
    if (statement.returnsRows) return { rows: statement.sync.all(...parameters), changes: 0 };
    return { rows: [], changes: Number(statement.sync.run(...parameters).changes) };
  }

  #statement(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  #prepare(sql: string): Statement {
    const sync = this.#database.prepare(sql);
    return { sync, returnsRows: sync.columns().length > 0 };
  }
}
