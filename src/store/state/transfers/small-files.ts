/** Whole files that are kept in the state: written, read and dropped. */
import type { SmallOutcome, SmallWrite } from "../../../transfer/state-store.ts";
import { first, type Op, type OpContext, prepared, run } from "../operation.ts";
import { expiryFrom, isDue, toUpload } from "../schema.ts";
import { appendSegment, dropSegment, dropSegmentsBelow, lastSegment } from "./segments.ts";
import { updateState, uploadByHandle, withState } from "./upload-row.ts";

const insertBytes = prepared((db, p: { blob: string; bytes: Uint8Array }) =>
  db.insertInto("small_file").values({ blob: p.blob, bytes: p.bytes }),
);

const bytesOf = prepared((db, p: { blob: string }) =>
  db.selectFrom("small_file").select("bytes").where("blob", "=", p.blob),
);

export function* smallFile(context: OpContext, blob: string): Op<Uint8Array | null> {
  const row = yield* first(bytesOf(context, { blob }));
  return row?.bytes ?? null;
}

export function* storeSmall(context: OpContext, input: SmallWrite): Op<SmallOutcome> {
  const { now } = context;
  const row = yield* first(uploadByHandle(context, { handle: input.handle }));
  if (row === null) return { kind: "unknown" };
  const seen = { upload: toUpload(row), now };
  if (row.status !== "receiving" || row.generation !== input.generation || isDue(row, now)) {
    return { kind: "inactive", ...seen };
  }
  if (row.lease_active === 1) return { kind: "locked", ...seen };
  const length = input.bytes.byteLength;
  if (row.offset_bytes !== 0 || row.size_bytes !== length) return { kind: "offset", ...seen };

  const last = yield* lastSegment(context, row);
  if (last !== null) yield* dropSegment(context, last);
  const fence = row.fence + 1;
  if (length > 0) {
    yield* run(insertBytes(context, { blob: input.blob, bytes: input.bytes }));
    yield* appendSegment(context, { upload: row, seq: 0, fence, blob: input.blob, length });
  }
  if (row.generation > 1) yield* dropSegmentsBelow(context, row, row.generation);
  const isRight = row.declared_sha256 === null || row.declared_sha256 === input.sha256;
  const next = withState(row, {
    status: isRight ? "complete" : "mismatch",
    offset_bytes: length,
    sha256: input.sha256,
    fence,
    updated_at: now,
    completed_at: isRight ? now : null,
    expires_at: expiryFrom(now, isRight ? input.fileTtlMs : input.uploadTtlMs),
  });
  yield* run(updateState(context, next));
  return { kind: "ok", upload: toUpload(next), now };
}
