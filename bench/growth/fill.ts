/**
 * Stores with many records, filled in minutes instead of hours: rows of two real uploads, one complete and one still receiving, are
 * copied with fresh names. Their blobs are not made: none of the operations that are timed reads the bytes of another upload.
 */
import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { newBlobName, newHandle, newTicket, ticketHash } from "../../src/transfer/identifiers.ts";
import { sendBodies } from "../client.ts";
import { createWithHead } from "../http-text.ts";
import { startServer } from "../processes.ts";
import { serverKinds } from "../servers.ts";
import type { Source } from "../source.ts";
import { createUpload } from "../tus-uploads.ts";
import { makeFolder } from "../workspace.ts";

type Row = Record<string, SQLInputValue>;

export interface FilledStore {
  readonly records: number;
  /** The folder of its server; the data folder is below it. */
  readonly dir: string;
  /** URL paths of uploads spread over all of them. */
  readonly samplePaths: readonly string[];
  /** Of uploads that take bytes, each of `receivingBytes`, none of them sent. */
  readonly receivingPaths: readonly string[];
}

const receivingBytes = 2 ** 30;
/** One of so many is still receiving. */
const receivingEach = 5;
/** The same number for every size, so that what is done to them is the same work. */
const receivingPaths = 200;
const samplePaths = 4_096;
const spanMs = 20 * 3_600_000;

export const databaseOf = (dir: string): string => join(dir, "data", "state.sqlite");

/** Makes the schema, and the two uploads that serve as patterns. */
async function makePatterns(dir: string, root: string, source: Source): Promise<void> {
  const server = await startServer(serverKinds.a, root, { dir, keep: true });
  if (server === null) throw new Error("Longshore cannot be started");
  const send = { kind: "file", path: source.path, offset: 0, bytes: 1_024 } as const;
  await sendBodies(server.port, [[{ head: createWithHead(1_024), send }]]);
  await createUpload(server, receivingBytes);
  await server.stop();
}

/** @returns the row id of the copy. */
function inserter(database: DatabaseSync, table: string, pattern: Row): (changes: Row) => number | bigint {
  const columns = Object.keys(pattern);
  const statement = database.prepare(
    `INSERT INTO "${table}" (${columns.join(", ")}) VALUES (${columns.map((name) => `:${name}`).join(", ")})`,
  );
  return (changes) => statement.run({ ...pattern, ...changes }).lastInsertRowid;
}

/** Copies of one upload with all its rows. */
function copier(database: DatabaseSync, status: "complete" | "receiving") {
  const first = (table: string, where: string, value: SQLInputValue): Row | undefined =>
    database.prepare(`SELECT * FROM "${table}" WHERE ${where} = ?`).get(value) as Row | undefined;
  const upload = first("upload", "status", status);
  const id = upload?.id ?? null;
  const ticket = first("ticket", "upload_id", id);
  if (upload === undefined || ticket === undefined) throw new Error(`The pattern ${status} was not stored`);
  const segment = first("segment", "upload_id", id);
  const insertUpload = inserter(database, "upload", upload);
  const insertTicket = inserter(database, "ticket", ticket);
  const insertSegment = segment === undefined ? () => {} : inserter(database, "segment", segment);
  return (createdAt: number): string => {
    const handle = newHandle();
    const secret = newTicket();
    const isComplete = status === "complete";
    const upload_id = insertUpload({
      id: null,
      handle,
      created_at: createdAt,
      updated_at: createdAt,
      ...(isComplete && { completed_at: createdAt, sha256: randomBytes(32).toString("hex") }),
    });
    const hash = ticketHash(secret);
    insertTicket({ upload_id, hash, created_at: createdAt });
    insertSegment({ upload_id, blob: newBlobName(handle) });
    return `/files/${secret}`;
  };
}

export async function fillStore(root: string, records: number, source: Source): Promise<FilledStore> {
  const dir = makeFolder(root);
  mkdirSync(join(dir, "data"));
  await makePatterns(dir, root, source);
  const database = new DatabaseSync(databaseOf(dir));
  database.exec("PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000; BEGIN");
  const addComplete = copier(database, "complete");
  const addReceiving = copier(database, "receiving");
  const sampled: string[] = [];
  const receiving: string[] = [];
  const sampleEach = Math.max(1, Math.floor(records / samplePaths));
  const keepEach = Math.max(1, Math.floor(records / receivingEach / receivingPaths)) * receivingEach;
  const now = Date.now();
  for (let n = 0; n < records; n += 1) {
    const isReceiving = n % receivingEach === 0;
    const createdAt = now - spanMs + Math.floor((n / records) * spanMs);
    const path = (isReceiving ? addReceiving : addComplete)(createdAt);
    if (n % sampleEach === 0) sampled.push(path);
    if (n % keepEach === 0 && receiving.length < receivingPaths) receiving.push(path);
  }
  database.exec(`
    UPDATE usage SET files = (SELECT count(*) FROM upload), bytes = (SELECT sum(size_bytes) FROM upload);
    COMMIT;
    PRAGMA wal_checkpoint(TRUNCATE)`);
  database.close();
  return { records, dir, samplePaths: sampled, receivingPaths: receiving };
}
