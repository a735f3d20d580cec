/**
 * Pages that deleted rows have left in the database file go back to the disk in small pieces: the last pages of the file move to where
 * free ones are, and the file ends earlier. It takes the database's one writer for a few ms at a time.
 */
import { first, type Op, type OpContext, type Operation, type Query, run } from "../operation.ts";

const pieceMs = 5;
const piecePages = 256;
/** 4 MiB that the next small files will want again. */
const stockPages = 1_024;

const pragma = <Row>(sql: string, reads: boolean): Query<Row> => ({ sql, parameters: [], reads, kept: true });
const pageCount = pragma<{ page_count: number }>("PRAGMA page_count", true);
const freeCount = pragma<{ freelist_count: number }>("PRAGMA freelist_count", true);
const kind = pragma<{ auto_vacuum: number }>("PRAGMA auto_vacuum", true);
const moveOne = pragma<never>("PRAGMA incremental_vacuum(1)", false);

/** True where there is more to give. `all`: otherwise a stock stays, up to a quarter of the file, since to grow again costs more. */
function* freePages(_: OpContext, all: boolean): Op<boolean> {
  const started = performance.now();
  const pages = (yield* first(pageCount))?.page_count ?? 0;
  const free = (yield* first(freeCount))?.freelist_count ?? 0;
  const stock = all ? 0 : Math.max(stockPages, Math.floor(pages / 4));
  // Databases of before this was thought of can only reuse what is free in them.
  if (free <= stock || (yield* first(kind))?.auto_vacuum === 0) return false;
  let left = free;
  for (let moved = 0; moved < piecePages && left > stock; moved += 1, left -= 1) {
    yield* run(moveOne);
    if (performance.now() - started > pieceMs) break;
  }
  return left > stock;
}

export const spaceOperations = {
  freePages: { mode: "housekeeping", frees: true, run: freePages } satisfies Operation<[boolean], boolean>,
};
