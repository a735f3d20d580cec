/** Making and finding uploads. */
import type { UploadRecord } from "../../../transfer/records.ts";
import type { CreateOutcome, DownloadView, NewUpload, TicketView } from "../../../transfer/state-store.ts";
import { first, type Op, type OpContext, prepared, run } from "../operation.ts";
import { expiryFrom, isDue, toSegment, toTicket, toUpload, type UploadRow } from "../schema.ts";
import { appendSegment, segments } from "./segments.ts";
import { issueTicket } from "./tickets.ts";
import { uploadByHandle } from "./upload-row.ts";
import { addUsage, checkQuota } from "./usage.ts";

export const uploadByKey = prepared((db, p: { principal: string; tool: string; key: string }) =>
  db
    .selectFrom("idempotency")
    .innerJoin("upload", "upload.id", "idempotency.upload_id")
    .selectAll("upload")
    .select("idempotency.arguments_hash")
    .where("idempotency.principal", "=", p.principal)
    .where("idempotency.tool", "=", p.tool)
    .where("idempotency.key", "=", p.key),
);

export const insertUpload = prepared((db, p: Omit<UploadRow, "id">) =>
  db
    .insertInto("upload")
    .values({
      handle: p.handle,
      principal: p.principal,
      status: p.status,
      filename: p.filename,
      content_type: p.content_type,
      metadata: p.metadata,
      size_bytes: p.size_bytes,
      offset_bytes: p.offset_bytes,
      declared_sha256: p.declared_sha256,
      sha256: p.sha256,
      generation: p.generation,
      fence: p.fence,
      lease_owner: p.lease_owner,
      lease_active: p.lease_active,
      lease_request: p.lease_request,
      created_at: p.created_at,
      updated_at: p.updated_at,
      completed_at: p.completed_at,
      expires_at: p.expires_at,
      marked_at: p.marked_at,
      bytes_per_second: p.bytes_per_second,
      concat: p.concat,
      upload_concat: p.upload_concat,
    })
    .onConflict((conflict) => conflict.column("handle").doNothing())
    .returning("id"),
);

/** A key whose record has expired has ended with it, and is taken over by the new record. */
export const upsertKey = prepared(
  (db, p: { principal: string; tool: string; key: string; argumentsHash: string; id: number }) =>
    db
      .insertInto("idempotency")
      .values({
        principal: p.principal,
        tool: p.tool,
        key: p.key,
        arguments_hash: p.argumentsHash,
        upload_id: p.id,
      })
      .onConflict((conflict) =>
        conflict.columns(["principal", "tool", "key"]).doUpdateSet((eb) => ({
          arguments_hash: eb.ref("excluded.arguments_hash"),
          upload_id: eb.ref("excluded.upload_id"),
        })),
      ),
);

export function* createUpload(context: OpContext, input: NewUpload): Op<CreateOutcome> {
  const { now } = context;
  const { principal, handle, idempotency, begin } = input;
  if (idempotency !== null) {
    const known = yield* first(
      uploadByKey(context, { principal, tool: idempotency.tool, key: idempotency.key }),
    );
    if (known !== null && !isDue(known, now)) {
      if (known.arguments_hash !== idempotency.argumentsHash) return { kind: "conflict" };
      yield* issueTicket(context, known, input.ticket);
      return { kind: "existing", upload: toUpload(known), now };
    }
  }
  const exceeded = yield* checkQuota(context, principal, input.quota, {
    bytes: input.sizeBytes ?? 0,
    files: 1,
  });
  if (exceeded !== null) return exceeded;
  const values: Omit<UploadRow, "id"> = {
    handle,
    principal,
    status: "receiving",
    filename: input.filename,
    content_type: input.contentType,
    metadata: input.metadata,
    size_bytes: input.sizeBytes,
    offset_bytes: 0,
    declared_sha256: input.declaredSha256,
    sha256: null,
    generation: 1,
    fence: begin === null ? 0 : 1,
    lease_owner: begin?.owner ?? null,
    lease_active: begin === null ? 0 : 1,
    lease_request: null,
    created_at: now,
    updated_at: now,
    completed_at: null,
    expires_at: expiryFrom(now, input.ttlMs),
    marked_at: null,
    bytes_per_second: null,
    concat: input.concat,
    upload_concat: null,
  };
  const inserted = yield* first(insertUpload(context, values));
  if (inserted === null) return { kind: "taken" };
  const row: UploadRow = { ...values, id: inserted.id };
  yield* issueTicket(context, row, input.ticket, "first");
  if (idempotency !== null) yield* run(upsertKey(context, { principal, id: row.id, ...idempotency }));
  yield* addUsage(context, principal, input.sizeBytes ?? 0, 1);
  const segment =
    begin === null
      ? null
      : yield* appendSegment(context, { upload: row, seq: 0, fence: row.fence, blob: begin.blob });
  return { kind: "created", upload: toUpload(row), segment: segment && toSegment(handle, segment), now };
}

export const ticketWithUpload = prepared((db, p: { hash: string }) =>
  db
    .selectFrom("ticket")
    .innerJoin("upload", "upload.id", "ticket.upload_id")
    .selectAll("upload")
    .select([
      "ticket.hash as ticket_hash",
      "ticket.kind as ticket_kind",
      "ticket.seq as ticket_seq",
      "ticket.generation as ticket_generation",
      "ticket.created_at as ticket_created_at",
      "ticket.expires_at as ticket_expires_at",
    ])
    .where("ticket.hash", "=", p.hash),
);

export function* findByTicket(context: OpContext, hash: string): Op<TicketView | null> {
  const row = yield* first(ticketWithUpload(context, { hash }));
  if (row === null) return null;
  const ticket = toTicket(row.handle, {
    hash: row.ticket_hash,
    upload_id: row.id,
    kind: row.ticket_kind,
    seq: row.ticket_seq,
    generation: row.ticket_generation,
    created_at: row.ticket_created_at,
    expires_at: row.ticket_expires_at,
  });
  return { ticket, upload: toUpload(row), now: context.now };
}

export function* findDownload(context: OpContext, hash: string): Op<DownloadView | null> {
  const view = yield* findByTicket(context, hash);
  if (view === null) return null;
  const { handle, status } = view.upload;
  return { ...view, segments: status === "complete" ? yield* segments(context, handle) : [] };
}

export function* findUpload(
  context: OpContext,
  handle: string,
): Op<{ upload: UploadRecord; now: number } | null> {
  const row = yield* first(uploadByHandle(context, { handle }));
  return row && { upload: toUpload(row), now: context.now };
}
