/** A finished upload in many segments becomes one in one. */
import { first, type Op, type OpContext } from "../operation.ts";
import { unlistGarbage } from "./garbage.ts";
import { appendSegment, dropSegmentsBelow } from "./segments.ts";
import { uploadByHandle } from "./upload-row.ts";

export function* replaceSegments(
  context: OpContext,
  handle: string,
  generation: number,
  segment: { blob: string; length: number },
): Op<boolean> {
  const row = yield* first(uploadByHandle(context, { handle }));
  if (row === null || row.status !== "complete" || row.generation !== generation) return false;
  if (segment.length !== row.offset_bytes) {
    throw new RangeError(
      `${handle} has ${row.offset_bytes} bytes and cannot be replaced by ${segment.length}`,
    );
  }
  yield* dropSegmentsBelow(context, row, generation + 1);
  const { blob, length } = segment;
  yield* appendSegment(context, { upload: row, seq: 0, start: 0, length, fence: row.fence, blob });
  yield* unlistGarbage(context, blob);
  return true;
}
