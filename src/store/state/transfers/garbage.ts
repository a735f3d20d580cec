/**
 * Blobs that may go: listed when they lose their last name (or before they get one), handed out once they have been
 * listed long enough and still no segment names them.
 */
import { first, type Op, type OpContext, oneOff, prepared, rows, run } from "../operation.ts";

/** Names in one call: bounds the length of a statement and the time of a transaction. */
const maxNames = 1_000;

const namedBlob = prepared((db, p: { blob: string }) =>
  db
    .selectFrom("segment")
    .select("blob")
    .where("blob", "=", p.blob)
    .limit((eb) => eb.lit(1)),
);

/** Listed again counts from now: the grace is an hour after the last reference. */
const listGarbage = prepared((db, p: { blob: string; since: number }) =>
  db
    .insertInto("garbage")
    .values({ blob: p.blob, since: p.since })
    .onConflict((conflict) =>
      conflict.column("blob").doUpdateSet((eb) => ({ since: eb.ref("excluded.since") })),
    ),
);

const deleteSmall = prepared((db, p: { blob: string }) =>
  db.deleteFrom("small_file").where("blob", "=", p.blob),
);

const deleteGarbage = prepared((db, p: { blob: string }) =>
  db.deleteFrom("garbage").where("blob", "=", p.blob),
);

const ripeGarbage = prepared((db, p: { before: number; limit: number }) =>
  db
    .selectFrom("garbage")
    .select("garbage.blob")
    .where("since", "<=", p.before)
    .where((eb) =>
      eb.not(
        eb.exists(
          eb.selectFrom("segment").select("segment.blob").whereRef("segment.blob", "=", "garbage.blob"),
        ),
      ),
    )
    .orderBy("since")
    .limit(p.limit),
);

const listed = prepared((db) =>
  db
    .selectFrom("garbage")
    .select((eb) => [eb.fn.countAll<number>().as("blobs"), eb.fn.min("since").as("since")]),
);

/** Of these names, those that no segment names any more are garbage from now on. */
export function* discardBlobs(context: OpContext, blobs: readonly string[]): Op<void> {
  for (const blob of new Set(blobs)) {
    if ((yield* first(namedBlob(context, { blob }))) === null) {
      yield* run(listGarbage(context, { blob, since: context.now }));
    }
  }
}

/** For a blob that was announced and has its segment now: the list stays as short as the work to do. */
export function* unlistGarbage(context: OpContext, blob: string): Op<void> {
  yield* run(deleteGarbage(context, { blob }));
}

export function* announceBlob(context: OpContext, blob: string): Op<void> {
  yield* run(listGarbage(context, { blob, since: context.now }));
}

export function* addGarbage(context: OpContext, blobs: readonly string[]): Op<void> {
  yield* discardBlobs(context, blobs);
}

export function* garbage(context: OpContext, graceMs: number, limit: number): Op<string[]> {
  const ripe = yield* rows(ripeGarbage(context, { before: context.now - graceMs, limit }));
  return ripe.map(({ blob }) => blob);
}

export function* garbageLeft(context: OpContext): Op<{ blobs: number; since: number | null }> {
  const left = yield* first(listed(context, {}));
  return { blobs: left?.blobs ?? 0, since: left?.since ?? null };
}

export function* forgetGarbage(context: OpContext, blobs: readonly string[]): Op<void> {
  for (const blob of blobs) {
    if ((yield* first(namedBlob(context, { blob }))) !== null) continue;
    yield* run(deleteGarbage(context, { blob }));
    if (blob.startsWith("small:")) yield* run(deleteSmall(context, { blob }));
  }
}

export function* unknownBlobs(context: OpContext, blobs: readonly string[]): Op<string[]> {
  if (blobs.length > maxNames)
    throw new RangeError(`At most ${maxNames} names in a call, got ${blobs.length}`);
  if (blobs.length === 0) return [];
  const known = yield* rows(
    oneOff(
      context.db
        .selectFrom("segment")
        .select("blob")
        .where("blob", "in", blobs)
        .unionAll(context.db.selectFrom("garbage").select("blob").where("blob", "in", blobs)),
    ),
  );
  const names = new Set(known.map(({ blob }) => blob));
  return blobs.filter((blob) => !names.has(blob));
}
