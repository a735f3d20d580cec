/** Tickets: kept as hashes, at most 16 of each kind for a record. */
import type { UploadRecord } from "../../../transfer/records.ts";
import type { NewTicket } from "../../../transfer/state-store.ts";
import { first, type Op, type OpContext, prepared, rows, run } from "../operation.ts";
import { expiryFrom, type TicketTable, toUpload, type UploadRow } from "../schema.ts";
import { uploadByHandle } from "./upload-row.ts";

const maxOfKind = 16;

const insertTicket = prepared((db, p: TicketTable) =>
  db.insertInto("ticket").values({
    hash: p.hash,
    upload_id: p.upload_id,
    kind: p.kind,
    seq: p.seq,
    generation: p.generation,
    created_at: p.created_at,
    expires_at: p.expires_at,
  }),
);

const ticketsOfKind = prepared((db, p: { id: number; kind: NewTicket["kind"] }) =>
  db
    .selectFrom("ticket")
    .select(["hash", "seq"])
    .where("upload_id", "=", p.id)
    .where("kind", "=", p.kind)
    .orderBy("seq"),
);

const deleteTicket = prepared((db, p: { hash: string }) =>
  db.deleteFrom("ticket").where("hash", "=", p.hash),
);

const deleteTicketsOf = prepared((db, p: { id: number }) =>
  db.deleteFrom("ticket").where("upload_id", "=", p.id),
);

const deleteStale = prepared((db, p: { before: number; limit: number }) =>
  db
    .deleteFrom("ticket")
    .where("hash", "in", (eb) =>
      eb
        .selectFrom("ticket")
        .select("hash")
        .where("expires_at", "is not", null)
        .where("expires_at", "<=", p.before)
        .where("kind", "=", "download")
        .orderBy("expires_at")
        .limit(p.limit),
    ),
);

/** Adds a ticket and lets the oldest of its kind go where there are too many. `first`: the record is new and has none. */
export function* issueTicket(
  context: OpContext,
  { id, generation }: Pick<UploadRow, "id" | "generation">,
  ticket: NewTicket,
  place: "first" | "next" = "next",
): Op<void> {
  const { hash, kind } = ticket;
  let seq = 0;
  if (place === "next") {
    const held = yield* rows(ticketsOfKind(context, { id, kind }));
    seq = (held.at(-1)?.seq ?? -1) + 1;
    for (const old of held.slice(0, Math.max(0, held.length + 1 - maxOfKind))) {
      yield* run(deleteTicket(context, { hash: old.hash }));
    }
  }
  const expiresAt = expiryFrom(context.now, ticket.ttlMs);
  yield* run(
    insertTicket(context, {
      hash,
      upload_id: id,
      kind,
      seq,
      generation,
      created_at: context.now,
      expires_at: expiresAt,
    }),
  );
}

export function* addTicket(
  context: OpContext,
  handle: string,
  principal: string | null,
  ticket: NewTicket,
): Op<{ upload: UploadRecord; now: number } | null> {
  const row = yield* first(uploadByHandle(context, { handle }));
  if (row === null || (principal !== null && row.principal !== principal)) return null;
  yield* issueTicket(context, row, ticket);
  return { upload: toUpload(row), now: context.now };
}

export function* dropTickets(context: OpContext, { id }: Pick<UploadRow, "id">): Op<void> {
  yield* run(deleteTicketsOf(context, { id }));
}

export function* removeStaleTickets(context: OpContext, graceMs: number, limit: number): Op<number> {
  return yield* run(deleteStale(context, { before: context.now - graceMs, limit }));
}
