/** Segment rows, and the rule that a blob which loses its last name becomes garbage. */
import type { SegmentRecord } from "../../../transfer/records.ts";
import { first, type Op, type OpContext, prepared, rows, run } from "../operation.ts";
import { type SegmentTable, toSegment, type UploadRow } from "../schema.ts";
import { discardBlobs } from "./garbage.ts";

const insertSegment = prepared((db, p: SegmentTable) =>
  db.insertInto("segment").values({
    upload_id: p.upload_id,
    generation: p.generation,
    seq: p.seq,
    start_bytes: p.start_bytes,
    length_bytes: p.length_bytes,
    blob: p.blob,
    blob_offset: p.blob_offset,
    fence: p.fence,
  }),
);

const lastOf = prepared((db, p: { id: number; generation: number }) =>
  db
    .selectFrom("segment")
    .selectAll()
    .where("upload_id", "=", p.id)
    .where("generation", "=", p.generation)
    .orderBy("seq", "desc")
    .limit((eb) => eb.lit(1)),
);

const segmentBySeq = prepared((db, p: { id: number; generation: number; seq: number }) =>
  db
    .selectFrom("segment")
    .selectAll()
    .where("upload_id", "=", p.id)
    .where("generation", "=", p.generation)
    .where("seq", "=", p.seq),
);

const updateLength = prepared((db, p: { id: number; generation: number; seq: number; length: number }) =>
  db
    .updateTable("segment")
    .set({ length_bytes: p.length })
    .where("upload_id", "=", p.id)
    .where("generation", "=", p.generation)
    .where("seq", "=", p.seq),
);

const deleteBySeq = prepared((db, p: { id: number; generation: number; seq: number }) =>
  db
    .deleteFrom("segment")
    .where("upload_id", "=", p.id)
    .where("generation", "=", p.generation)
    .where("seq", "=", p.seq),
);

const deleteBelow = prepared((db, p: { id: number; generation: number }) =>
  db
    .deleteFrom("segment")
    .where("upload_id", "=", p.id)
    .where("generation", "<", p.generation)
    .returning("blob"),
);

const segmentsOf = prepared((db, p: { handle: string }) =>
  db
    .selectFrom("segment")
    .innerJoin("upload", (join) =>
      join.onRef("upload.id", "=", "segment.upload_id").onRef("upload.generation", "=", "segment.generation"),
    )
    .selectAll("segment")
    .where("upload.handle", "=", p.handle)
    .where("segment.length_bytes", ">", (eb) => eb.lit(0))
    .orderBy("segment.seq"),
);

/** Rows of one upload become another's, behind those that are there. Both have what they had of order and bytes. */
const moveSegments = prepared(
  (db, p: { id: number; generation: number; to: number; afterSeq: number; start: number; fence: number }) =>
    db
      .updateTable("segment")
      .set((eb) => ({
        upload_id: p.to,
        generation: eb.lit(1),
        seq: eb("seq", "+", p.afterSeq),
        start_bytes: eb("start_bytes", "+", p.start),
        fence: p.fence,
      }))
      .where("upload_id", "=", p.id)
      .where("generation", "=", p.generation)
      .where("length_bytes", ">", (eb) => eb.lit(0)),
);

/**
 * Gives the bytes of `from` to the first generation of `to`, which has none at or after `start`. What is left with `from` is
 * empty. Returns the number that the next segment of `to` may have.
 */
export function* takeOverSegments(
  context: OpContext,
  from: Generation,
  to: { readonly id: number; readonly fence: number; readonly nextSeq: number; readonly start: number },
): Op<number> {
  const { id, generation } = from;
  const last = yield* lastSegment(context, from);
  if (last === null) return to.nextSeq;
  const { nextSeq: afterSeq, start, fence } = to;
  yield* run(moveSegments(context, { id, generation, to: to.id, afterSeq, start, fence }));
  return afterSeq + last.seq + 1;
}

export function* segments(context: OpContext, handle: string): Op<SegmentRecord[]> {
  const found = yield* rows(segmentsOf(context, { handle }));
  return found.map((row) => toSegment(handle, row));
}

interface Generation {
  readonly id: number;
  readonly generation: number;
}

export function* lastSegment(context: OpContext, { id, generation }: Generation): Op<SegmentTable | null> {
  return yield* first(lastOf(context, { id, generation }));
}

export function* findSegment(
  context: OpContext,
  { id, generation }: Generation,
  seq: number,
): Op<SegmentTable | null> {
  return yield* first(segmentBySeq(context, { id, generation, seq }));
}

/** A new segment of length 0 at the upload's offset. */
export function* appendSegment(
  context: OpContext,
  input: {
    readonly upload: Pick<UploadRow, "id" | "generation" | "offset_bytes">;
    readonly seq: number;
    readonly fence: number;
    readonly blob: string;
    readonly length?: number;
    readonly start?: number;
  },
): Op<SegmentTable> {
  const row: SegmentTable = {
    upload_id: input.upload.id,
    generation: input.upload.generation,
    seq: input.seq,
    start_bytes: input.start ?? input.upload.offset_bytes,
    length_bytes: input.length ?? 0,
    blob: input.blob,
    blob_offset: 0,
    fence: input.fence,
  };
  yield* run(insertSegment(context, row));
  return row;
}

export function* setSegmentLength(context: OpContext, segment: SegmentTable, length: number): Op<void> {
  const { upload_id: id, generation, seq } = segment;
  yield* run(updateLength(context, { id, generation, seq, length }));
}

export function* dropSegment(context: OpContext, segment: SegmentTable): Op<void> {
  const { upload_id: id, generation, seq, blob } = segment;
  yield* run(deleteBySeq(context, { id, generation, seq }));
  yield* discardBlobs(context, [blob]);
}

/** Removes the segments of all generations below this one. */
export function* dropSegmentsBelow(
  context: OpContext,
  { id }: Pick<UploadRow, "id">,
  generation: number,
): Op<void> {
  const removed = yield* rows(deleteBelow(context, { id, generation }));
  yield* discardBlobs(
    context,
    removed.map(({ blob }) => blob),
  );
}
