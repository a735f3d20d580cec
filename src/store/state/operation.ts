/**
 * How a state operation is written: once, for every database. An operation is a generator that yields compiled queries
 * and is sent their results; the database's runner drives it, synchronously over SQLite, with `await` over a network.
 * An operation sees no transaction: its runner gives it one in which it is alone (serializable), so it reads, decides
 * and writes without locks, and it may be run again from the start as long as it has not been acknowledged.
 */
import type { CompiledQuery, Kysely } from "kysely";
import type { StateTables } from "./schema.ts";

/** Carries the type of the rows along; never there at run time. */
declare const rowType: unique symbol;

export interface Query<Row = unknown> {
  readonly sql: string;
  readonly parameters: readonly unknown[];
  readonly reads: boolean;
  /** The text is one of a fixed set, so that the prepared statement is worth keeping. */
  readonly kept: boolean;
  readonly [rowType]?: Row;
}

export interface QueryResult {
  readonly rows: readonly unknown[];
  /** Rows inserted, updated or deleted by a query that returns none. */
  readonly changes: number;
}

export type Op<Result> = Generator<Query, Result, QueryResult>;

export interface OpContext {
  readonly db: Kysely<StateTables>;
  /** The store's clock in ms; one value for the whole operation. */
  readonly now: number;
}

/**
 * - `read`: exactly one query that changes nothing.
 * - `snapshot`: several queries that change nothing and must see one state.
 * - `write`: changes records; subscribers of the change feed hear of it.
 * - `housekeeping`: a write that nobody waits for.
 */
export type OperationMode = "read" | "snapshot" | "write" | "housekeeping";

export interface Operation<Args extends readonly unknown[], Result> {
  readonly mode: OperationMode;
  /** Frees space, or is needed for that: on a full disk it may use the space that is held back for it (see `sqlite/ballast.ts`). */
  readonly frees?: boolean;
  run(context: OpContext, ...args: Args): Op<Result>;
}

/** Any operation at all; its arguments are known to its caller alone. */
export type AnyOperation = Operation<never[], unknown>;

/** The operations that make up a store of this interface (all methods return promises). */
export type OperationsOf<Store> = {
  readonly [Name in keyof Store]: Store[Name] extends (...args: infer Args) => Promise<infer Result>
    ? Operation<Args, Result>
    : never;
};

interface Compilable<Row> {
  compile(): CompiledQuery<Row>;
}

const isSelect = (compiled: CompiledQuery): boolean => compiled.query.kind === "SelectQueryNode";

/** Stands where a value will be while a query is compiled ahead. */
class Placeholder {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/**
 * A query that is built and compiled once for each database and only filled with values afterwards: building one costs
 * several times as much as SQLite needs to run it.
 *
 * Its builder sees placeholders instead of values, so it may put them anywhere a parameter goes but not look at them.
 */
export function prepared<Values extends object, Row>(
  build: (db: Kysely<StateTables>, values: Values) => Compilable<Row>,
): (context: OpContext, values: Values) => Query<Row> {
  let builtFor: Kysely<StateTables> | null = null;
  let text = "";
  let reads = false;
  let template: readonly unknown[] = [];
  return (context, values) => {
    if (builtFor !== context.db) {
      const placeholders = new Proxy({}, { get: (_, name) => new Placeholder(String(name)) });
      // The placeholders take the places of the values, whose types they are not: see above.
      const compiled = build(context.db, placeholders as Values).compile();
      text = compiled.sql;
      reads = isSelect(compiled);
      template = compiled.parameters;
      builtFor = context.db;
    }
    const given = values as Readonly<Record<string, unknown>>;
    const parameters = template.map((slot) => (slot instanceof Placeholder ? given[slot.name] : slot));
    return { sql: text, parameters, reads, kept: true };
  };
}

/** A query whose text depends on its values (lists of any length). */
export function oneOff<Row>(query: Compilable<Row>): Query<Row> {
  const compiled = query.compile();
  return { sql: compiled.sql, parameters: compiled.parameters, reads: isSelect(compiled), kept: false };
}

export function* rows<Row>(query: Query<Row>): Op<readonly Row[]> {
  const result = yield query;
  // The builder has derived the row's type from the tables: this is where it meets the database's answer.
  return result.rows as readonly Row[];
}

export function* first<Row>(query: Query<Row>): Op<Row | null> {
  const found = yield* rows(query);
  return found[0] ?? null;
}

/** Runs a query that returns no rows; tells how many it changed. */
export function* run(query: Query): Op<number> {
  const result = yield query;
  return result.changes;
}
