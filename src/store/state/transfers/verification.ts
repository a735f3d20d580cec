/** What follows after the last byte: the verdict, who reaches it, and starting over. */
import { sql } from "kysely";
import type { UploadRecord } from "../../../transfer/records.ts";
import type { NewTicket } from "../../../transfer/state-store.ts";
import { first, type Op, type OpContext, oneOff, prepared, rows, run } from "../operation.ts";
import { expiryFrom, toUpload } from "../schema.ts";
import { dropTickets, issueTicket } from "./tickets.ts";
import { updateState, uploadByHandle, withState } from "./upload-row.ts";

/** The partial uploads that a final one was made of are gone: the right bytes can only come to itself. */
const becomeWhole = prepared((db, p: { id: number }) =>
  db
    .updateTable("upload")
    .set((eb) => ({ concat: sql.lit("whole"), upload_concat: eb.lit(null) }))
    .where("id", "=", p.id),
);

export function* settle(
  context: OpContext,
  handle: string,
  generation: number,
  outcome: { status: "complete" | "mismatch"; sha256: string; ttlMs: number | null },
): Op<UploadRecord | null> {
  const row = yield* first(uploadByHandle(context, { handle }));
  if (row === null || row.status !== "verifying" || row.generation !== generation) return null;
  const next = withState(row, {
    status: outcome.status,
    sha256: outcome.sha256,
    lease_active: 0,
    completed_at: outcome.status === "complete" ? context.now : null,
    expires_at: expiryFrom(context.now, outcome.ttlMs),
  });
  yield* run(updateState(context, next));
  return toUpload(next);
}

export function* claimVerifications(
  context: OpContext,
  owner: string,
  deadOwners: readonly string[],
  limit: number,
): Op<UploadRecord[]> {
  const found = yield* rows(
    oneOff(
      context.db
        .selectFrom("upload")
        .selectAll()
        .where("status", "=", sql.lit("verifying"))
        .where((eb) =>
          deadOwners.length === 0
            ? eb("lease_owner", "is", null)
            : eb.or([eb("lease_owner", "is", null), eb("lease_owner", "in", deadOwners)]),
        )
        .limit(limit),
    ),
  );
  const claimed: UploadRecord[] = [];
  for (const row of found) {
    const next = withState(row, { lease_owner: owner, lease_active: 1, fence: row.fence + 1 });
    yield* run(updateState(context, next));
    claimed.push(toUpload(next));
  }
  return claimed;
}

export function* startOver(
  context: OpContext,
  handle: string,
  ticket: NewTicket,
  ttlMs: number | null,
): Op<{ upload: UploadRecord; now: number } | null> {
  const row = yield* first(uploadByHandle(context, { handle }));
  if (row === null || row.status !== "mismatch") return null;
  let next = withState(row, {
    status: "receiving",
    offset_bytes: 0,
    sha256: null,
    generation: row.generation + 1,
    fence: row.fence + 1,
    lease_owner: null,
    lease_active: 0,
    completed_at: null,
    expires_at: expiryFrom(context.now, ttlMs),
  });
  yield* run(updateState(context, next));
  if (row.concat === "final") {
    yield* run(becomeWhole(context, { id: row.id }));
    next = { ...next, concat: "whole", upload_concat: null };
  }
  yield* dropTickets(context, row);
  yield* issueTicket(context, next, ticket, "first");
  return { upload: toUpload(next), now: context.now };
}
