import { expect, it } from "vitest";
import {
  beginOf,
  begun,
  commitOf,
  committed,
  created,
  dayMs,
  expectUnchanged,
  finished,
  finishedPartial,
  found,
  newBlob,
  newConcatenation,
  newTicket,
  type StateUnderTest,
} from "./fixture.ts";

export function concatenating(under: () => StateUnderTest): void {
  it("a final upload has the segments of its partials in order, verifies, and has their usage as one file", async () => {
    const { state, other, recount } = under();
    const ticket = newTicket();
    const first = await created(state, { sizeBytes: 30, concat: "partial", ticket });
    const [one, two] = [newBlob(), newBlob()];
    await committed(state, await begun(state, first, { blob: one }), 10);
    await committed(state, await begun(other, first, { blob: two, owner: "p_two" }), 20);
    const empty = await finishedPartial(state, 0);
    const last = await finishedPartial(state, 5);
    await created(state, { sizeBytes: 7 });
    const input = newConcatenation({
      partials: [ticket.hash, empty.hash, last.hash],
      declaredSha256: "d".repeat(64),
      metadata: "filename eA==",
    });
    const outcome = await state.concatenate(input);
    if (outcome.kind !== "created") throw new Error(outcome.kind);
    expect(outcome.upload).toMatchObject({
      handle: input.handle,
      principal: "ada",
      status: "verifying",
      sizeBytes: 35,
      offset: 35,
      sha256: null,
      declaredSha256: "d".repeat(64),
      metadata: "filename eA==",
      leaseOwner: "p_one",
      leaseActive: true,
      concat: "final",
      uploadConcat: "final;/files/a /files/b",
      expiresAt: outcome.now + dayMs,
    });
    expect(await found(other, input.handle)).toEqual(outcome.upload);
    expect((await state.findByTicket(input.ticket.hash))?.upload).toEqual(outcome.upload);
    expect(
      (await state.segments(input.handle)).map(({ start, length, blob }) => [start, length, blob]),
    ).toEqual([
      [0, 10, one],
      [10, 20, two],
      [30, 5, last.blob],
    ]);
    for (const handle of [first.handle, empty.upload.handle, last.upload.handle]) {
      expect(await state.findUpload(handle)).toBeNull();
      expect(await state.segments(handle)).toEqual([]);
    }
    for (const hash of [ticket.hash, empty.hash, last.hash])
      expect(await state.findByTicket(hash)).toBeNull();
    // Only the blob that never got a byte is nobody's.
    expect(await state.garbage(0, 10)).toEqual([empty.blob]);
    expect(await state.usage("ada")).toEqual({ bytes: 42, files: 2 });
    expect(await recount("ada")).toEqual({ bytes: 42, files: 2 });
    const { uploads } = await state.listUploads({ principal: "ada", status: null, limit: 10, after: null });
    expect(uploads.map(({ handle }) => handle)).toContain(input.handle);
  });

  it("its blobs become garbage with it, and not before", async () => {
    const { state } = under();
    const parts = [await finishedPartial(state, 4), await finishedPartial(state, 6)];
    const input = newConcatenation({ partials: parts.map(({ hash }) => hash) });
    await state.concatenate(input);
    expect(await state.garbage(0, 10)).toEqual([]);
    expect(await state.unknownBlobs(parts.map(({ blob }) => blob))).toEqual([]);
    await state.removeUpload(input.handle, null);
    expect((await state.garbage(0, 10)).sort()).toEqual(parts.map(({ blob }) => blob).sort());
    expect(await state.usage("ada")).toEqual({ bytes: 0, files: 0 });
  });

  it("its verification can be claimed when its owner dies, settled, and its segments replaced by one", async () => {
    const { state, other } = under();
    const parts = [await finishedPartial(state, 4), await finishedPartial(state, 6)];
    const input = newConcatenation({ partials: parts.map(({ hash }) => hash), owner: "p_dead" });
    await state.concatenate(input);
    const [claimed] = await other.claimVerifications("p_two", ["p_dead"], 10);
    expect(claimed).toMatchObject({ handle: input.handle, leaseOwner: "p_two", concat: "final" });
    const verdict = { status: "complete", sha256: "f".repeat(64), ttlMs: null } as const;
    expect(await other.settle(input.handle, 1, verdict)).toMatchObject({
      status: "complete",
      expiresAt: null,
    });
    expect(await state.replaceSegments(input.handle, 1, { blob: newBlob(), length: 10 })).toBe(true);
    expect(await state.segments(input.handle)).toHaveLength(1);
    expect((await state.garbage(0, 10)).sort()).toEqual(parts.map(({ blob }) => blob).sort());
  });

  it("a writer that still holds a partial is fenced off by its end", async () => {
    const { state } = under();
    const part = await finishedPartial(state, 4);
    const lease = await begun(state, part.upload);
    const input = newConcatenation({ partials: [part.hash] });
    expect((await state.concatenate(input)).kind).toBe("created");
    expect(await state.commitWrite(commitOf(lease, 0))).toEqual({ kind: "fenced", upload: null });
    expect(await state.beginWrite(beginOf(part.upload))).toEqual({ kind: "unknown" });
    expect((await found(state, input.handle)).offset).toBe(4);
  });

  it("the same partials again find the same final, with a fresh ticket and nothing else changed", async () => {
    const { state, other, recount } = under();
    const parts = [await finishedPartial(state, 4), await finishedPartial(state, 6)];
    const partials = parts.map(({ hash }) => hash);
    const input = newConcatenation({ partials });
    const first = await state.concatenate(input);
    if (first.kind !== "created") throw new Error(first.kind);
    const again = newConcatenation({ partials });
    expect(await other.concatenate(again)).toMatchObject({ kind: "existing", upload: first.upload });
    for (const hash of [input.ticket.hash, again.ticket.hash])
      expect((await state.findByTicket(hash))?.upload.handle).toBe(input.handle);
    expect(await state.findUpload(again.handle)).toBeNull();
    expect(await recount("ada")).toEqual({ bytes: 10, files: 1 });
    const words = newConcatenation({ partials, argumentsHash: "0".repeat(64) });
    expect(await state.concatenate(words)).toEqual({ kind: "conflict" });
    const turned = newConcatenation({ partials: partials.toReversed() });
    expect(await state.concatenate(turned)).toEqual({ kind: "unknown", index: 0 });
    expect(await state.concatenate({ ...again, principal: "bob" })).toEqual({ kind: "unknown", index: 0 });
    await state.removeUpload(input.handle, null);
    expect(await state.concatenate(again)).toEqual({ kind: "unknown", index: 0 });
  });

  it("one wrong partial leaves all of them as they were", async () => {
    const { state, passTime, recount } = under();
    const good = await finishedPartial(state, 4);
    const ticket = newTicket();
    const shortOne = await created(state, { sizeBytes: 9, concat: "partial", ticket });
    const deferred = newTicket();
    await created(state, { sizeBytes: null, concat: "partial", ticket: deferred });
    const whole = newTicket();
    await finished(state, "complete", 10, { ticket: whole });
    const bobs = await finishedPartial(state, 4, { principal: "bob" });
    const before = await recount("ada");
    const attempt = (...partials: string[]) =>
      state.concatenate(newConcatenation({ partials: [good.hash, ...partials] }));
    expect(await attempt("0".repeat(64))).toEqual({ kind: "unknown", index: 1 });
    expect(await attempt(bobs.hash)).toEqual({ kind: "unknown", index: 1 });
    expect(await attempt(good.hash)).toEqual({ kind: "unknown", index: 1 });
    expect(await attempt(whole.hash)).toEqual({ kind: "not_partial", index: 1 });
    expect(await attempt(ticket.hash)).toEqual({ kind: "unfinished", index: 1, upload: shortOne });
    expect(await attempt(deferred.hash)).toMatchObject({ kind: "unfinished", index: 1 });
    const small = newConcatenation({ partials: [good.hash], maxSizeBytes: 3 });
    expect(await state.concatenate(small)).toEqual({ kind: "size", sizeBytes: 4 });
    const taken = newConcatenation({ partials: [good.hash], handle: shortOne.handle });
    expect(await state.concatenate(taken)).toEqual({ kind: "taken" });
    await expectUnchanged(state, good.upload);
    expect(await state.segments(good.upload.handle)).toHaveLength(1);
    expect(await state.usage("ada")).toEqual(before);
    expect(await recount("ada")).toEqual(before);
    await passTime(2 * dayMs);
    expect(await attempt()).toMatchObject({ kind: "expired", index: 0 });
  });

  it("of two at once for the same partials, one is made and the other finds it", async () => {
    const { state, other, recount } = under();
    const parts = [await finishedPartial(state, 4), await finishedPartial(state, 6)];
    const partials = parts.map(({ hash }) => hash);
    const outcomes = await Promise.all(
      [state, other, state, other].map((store) => store.concatenate(newConcatenation({ partials }))),
    );
    expect(outcomes.map(({ kind }) => kind).sort()).toEqual(["created", "existing", "existing", "existing"]);
    expect(await recount("ada")).toEqual({ bytes: 10, files: 1 });
  });

  it("one whose digest was wrong starts over as an upload like any other, and its partials stay gone", async () => {
    const { state } = under();
    const parts = [await finishedPartial(state, 4), await finishedPartial(state, 6)];
    const partials = parts.map(({ hash }) => hash);
    const input = newConcatenation({ partials, declaredSha256: "d".repeat(64) });
    await state.concatenate(input);
    await state.settle(input.handle, 1, { status: "mismatch", sha256: "f".repeat(64), ttlMs: dayMs });
    const restarted = await state.startOver(input.handle, newTicket(), dayMs);
    expect(restarted?.upload).toMatchObject({
      concat: "whole",
      uploadConcat: null,
      offset: 0,
      sizeBytes: 10,
      generation: 2,
    });
    expect(await found(state, input.handle)).toEqual(restarted?.upload);
    expect(await state.concatenate(newConcatenation({ partials }))).toEqual({ kind: "unknown", index: 0 });
  });

  it("a thousand partials are made into one at once", async () => {
    const { state } = under();
    const parts = await Promise.all(Array.from({ length: 1_000 }, () => finishedPartial(state, 3)));
    const input = newConcatenation({ partials: parts.map(({ hash }) => hash) });
    expect(await state.concatenate(input)).toMatchObject({ kind: "created", upload: { offset: 3_000 } });
    const segments = await state.segments(input.handle);
    expect(segments.map(({ blob }) => blob)).toEqual(parts.map(({ blob }) => blob));
    expect(await state.usage("ada")).toEqual({ bytes: 3_000, files: 1 });
  });

  it("a digest of the whole that comes with a write is kept, unless one was announced before", async () => {
    const { state } = under();
    const lease = await begun(state, await created(state, { sizeBytes: 10 }));
    const late = { declareSha256: "d".repeat(64) };
    expect((await committed(state, lease, 4, late)).upload.declaredSha256).toBe("d".repeat(64));
    const next = await begun(state, await found(state, lease.upload.handle));
    await committed(state, next, 6, { status: "verifying", declareSha256: "0".repeat(64) });
    expect((await found(state, lease.upload.handle)).declaredSha256).toBe("d".repeat(64));
  });
}
