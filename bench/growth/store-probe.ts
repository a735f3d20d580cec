/**
 * A process that opens a filled store through the engine and times what a client cannot time well from outside: opening, lists and
 * sweeps. Takes the data folder; writes milliseconds as JSON.
 */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openStore } from "../../src/store/open-store.ts";
import { median } from "../statistics.ts";

const [dataDir = ""] = process.argv.slice(2);

const lists = 200;
const pageRows = 30;
const dueRecords = 200;
const hourMs = 3_600_000;

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

async function medianOf(times: number, work: () => Promise<unknown>): Promise<number> {
  const all: number[] = [];
  for (let n = 0; n < times; n += 1) all.push(await timed(work));
  return median(all);
}

/** Runs `work` while this many records are past their time, and gives them their time back. */
async function withDueRecords(work: () => Promise<unknown>): Promise<number> {
  const database = new DatabaseSync(join(dataDir, "state.sqlite"), { timeout: 5_000 });
  const due = `SELECT handle FROM upload WHERE status = 'receiving' AND lease_active = 0 ORDER BY rowid LIMIT ${dueRecords}`;
  const at = (ms: number): number => Date.now() + ms;
  try {
    database.prepare(`UPDATE upload SET expires_at = ? WHERE handle IN (${due})`).run(at(-1_000));
    return await timed(work);
  } finally {
    database
      .prepare(`UPDATE upload SET expires_at = ?, marked_at = NULL WHERE handle IN (${due})`)
      .run(at(24 * hourMs));
    database.close();
  }
}

const openedAt = performance.now();
const store = await openStore({
  dataDir,
  fsync: "always",
  quota: { maxBytes: null, maxFiles: null },
  minFreeBytes: 0,
  log: () => {},
  limits: {
    maxFileBytes: 2 ** 40,
    inlineChunkBytes: 262_144,
    inlineFileBytes: 4_194_304,
    uploadTtlMs: 24 * hourMs,
    fileTtlMs: null,
    downloadTtlMs: hourMs,
  },
});
const openMs = performance.now() - openedAt;
const { transfers } = store;

function countComplete(): number {
  const database = new DatabaseSync(join(dataDir, "state.sqlite"), { readOnly: true });
  try {
    return Number(database.prepare("SELECT count(*) AS n FROM upload WHERE status = 'complete'").get()?.n);
  } finally {
    database.close();
  }
}

/** Half-way among the complete files: what earlier rounds created lies behind all of them. */
async function middleCursor(): Promise<string | null> {
  const half = Math.floor(countComplete() / 2);
  const limit = Math.min(1_000, half);
  let cursor: string | null = null;
  for (let seen = 0; seen < half; seen += limit)
    cursor = (await transfers.list("local", { status: "complete", limit, cursor })).nextCursor;
  return cursor;
}

const cursor = await middleCursor();
const page = (status: "complete" | null, from: string | null) => () =>
  transfers.list("local", { status, limit: pageRows, cursor: from });
const result = {
  open: openMs,
  list: await medianOf(lists, page(null, null)),
  listMiddle: await medianOf(lists, page(null, cursor)),
  listStatus: await medianOf(lists, page("complete", cursor)),
  sweepFirst: await timed(() => transfers.sweep()),
  sweepNothing: await medianOf(5, () => transfers.sweep()),
  sweepDue: await withDueRecords(() => transfers.sweep()),
};
await store.close();
process.stdout.write(JSON.stringify(result));
