/** One upload made of several partial ones (tus Concatenation): rows change their owner, bytes stay where they are. */
import { createHash } from "node:crypto";
import type { ConcatenateOutcome, Concatenation } from "../../../transfer/state-store.ts";
import { first, type Op, type OpContext, run } from "../operation.ts";
import { expiryFrom, isDue, toUpload, type UploadRow } from "../schema.ts";
import { dropUpload } from "./removal.ts";
import { takeOverSegments } from "./segments.ts";
import { issueTicket } from "./tickets.ts";
import { insertUpload, ticketWithUpload, uploadByKey, upsertKey } from "./uploads.ts";
import { addUsage } from "./usage.ts";

/** Among the idempotency keys: the same request after a lost answer finds what the first one made. */
const tool = "concatenate";

type Fault = Exclude<ConcatenateOutcome, { readonly kind: "created" | "existing" }>;

/** All partials, each finished and the principal's own; or what is wrong with the first that is not. */
function* finishedPartials(
  context: OpContext,
  { partials, principal, maxSizeBytes }: Concatenation,
): Op<{ rows: UploadRow[]; sizeBytes: number } | Fault> {
  const rows: UploadRow[] = [];
  const seen = new Set<number>();
  let sizeBytes = 0;
  for (const [index, hash] of partials.entries()) {
    const row = yield* first(ticketWithUpload(context, { hash }));
    const isOwn =
      row !== null &&
      row.principal === principal &&
      row.ticket_kind === "upload" &&
      row.ticket_generation === row.generation;
    if (!isOwn || seen.has(row.id)) return { kind: "unknown", index };
    if (row.concat !== "partial") return { kind: "not_partial", index };
    if (isDue(row, context.now)) return { kind: "expired", index, upload: toUpload(row) };
    if (row.size_bytes === null || row.offset_bytes !== row.size_bytes) {
      return { kind: "unfinished", index, upload: toUpload(row) };
    }
    seen.add(row.id);
    rows.push(row);
    sizeBytes += row.size_bytes;
  }
  return sizeBytes > maxSizeBytes ? { kind: "size", sizeBytes } : { rows, sizeBytes };
}

export function* concatenate(context: OpContext, input: Concatenation): Op<ConcatenateOutcome> {
  const { now } = context;
  const { principal, handle, argumentsHash } = input;
  const key = createHash("sha256").update(input.partials.join(" ")).digest("hex");
  const known = yield* first(uploadByKey(context, { principal, tool, key }));
  // One that has started over is a whole upload by now, and no answer to this request.
  if (known !== null && known.concat === "final" && !isDue(known, now)) {
    if (known.arguments_hash !== argumentsHash) return { kind: "conflict" };
    yield* issueTicket(context, known, input.ticket);
    return { kind: "existing", upload: toUpload(known), now };
  }
  const found = yield* finishedPartials(context, input);
  if ("kind" in found) return found;
  const { rows: parts, sizeBytes } = found;

  const values: Omit<UploadRow, "id"> = {
    handle,
    principal,
    status: "verifying",
    filename: input.filename,
    content_type: input.contentType,
    metadata: input.metadata,
    size_bytes: sizeBytes,
    offset_bytes: sizeBytes,
    declared_sha256: input.declaredSha256,
    sha256: null,
    generation: 1,
    fence: 1,
    lease_owner: input.owner,
    lease_active: 1,
    lease_request: null,
    created_at: now,
    updated_at: now,
    completed_at: null,
    expires_at: expiryFrom(now, input.ttlMs),
    marked_at: null,
    bytes_per_second: null,
    concat: "final",
    upload_concat: input.uploadConcat,
  };
  const inserted = yield* first(insertUpload(context, values));
  if (inserted === null) return { kind: "taken" };
  const row: UploadRow = { ...values, id: inserted.id };
  yield* issueTicket(context, row, input.ticket, "first");
  yield* run(upsertKey(context, { principal, tool, key, argumentsHash, id: row.id }));
  let nextSeq = 0;
  let start = 0;
  for (const part of parts) {
    nextSeq = yield* takeOverSegments(context, part, { id: row.id, fence: row.fence, nextSeq, start });
    start += part.offset_bytes;
    // Its bytes are named by the final upload by now, so none of them becomes garbage.
    yield* dropUpload(context, part);
  }
  yield* addUsage(context, principal, sizeBytes, 1);
  return { kind: "created", upload: toUpload(row), now };
}
