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
  found,
  hourMs,
  newBlob,
  type StateUnderTest,
  written,
} from "./fixture.ts";

export function leases(under: () => StateUnderTest): void {
  it("the first write takes the lease at the next fence and gets an empty segment at the offset", async () => {
    const { state } = under();
    const upload = await created(state);
    const blob = newBlob();
    const outcome = await begun(state, upload, { offset: 0, blob });
    expect(outcome.upload).toEqual({ ...upload, fence: 1, leaseOwner: "p_one", leaseActive: true });
    expect(outcome.segment).toMatchObject({ seq: 0, start: 0, length: 0, blob, blobOffset: 0, fence: 1 });
    await expectUnchanged(state, outcome.upload);
  });

  it("of many writers at once, over two stores, one gets the lease and the others find it locked", async () => {
    const { state, other } = under();
    const upload = await created(state);
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        (index % 2 === 0 ? state : other).beginWrite(beginOf(upload, { owner: `p_${index}` })),
      ),
    );
    expect(outcomes.filter(({ kind }) => kind === "ok")).toHaveLength(1);
    expect(outcomes.filter(({ kind }) => kind === "locked")).toHaveLength(19);
    expect((await found(state, upload.handle)).fence).toBe(1);
  });

  it("a lease that is active locks its own process out too", async () => {
    const { state } = under();
    const upload = await created(state);
    const lease = await begun(state, upload);
    const held = { fence: lease.upload.fence, seq: lease.segment.seq };
    expect(await state.beginWrite(beginOf(upload, { held }))).toMatchObject({
      kind: "locked",
      upload: lease.upload,
    });
  });

  it("a writer with a stale offset is told the true one and changes nothing", async () => {
    const { state } = under();
    const upload = await written(state, await created(state), 300);
    expect(await state.beginWrite(beginOf(upload, { offset: 299 }))).toMatchObject({
      kind: "offset",
      upload: { offset: 300 },
    });
    await expectUnchanged(state, upload);
  });

  it("an unknown handle, another generation, a finished or an expired upload take no write", async () => {
    const { state, passTime } = under();
    const upload = await created(state, { ttlMs: hourMs });
    expect(await state.beginWrite(beginOf({ ...upload, handle: "fh_none" }))).toEqual({ kind: "unknown" });
    expect(await state.beginWrite(beginOf({ ...upload, generation: upload.generation + 1 }))).toMatchObject({
      kind: "inactive",
      upload,
    });
    for (const status of ["complete", "mismatch", "verifying"] as const) {
      const done = await finished(state, status);
      expect(await state.beginWrite(beginOf(done, { takeOverFence: done.fence }))).toMatchObject({
        kind: "inactive",
        upload: { status },
      });
    }
    await passTime(hourMs);
    expect(await state.beginWrite(beginOf(upload))).toMatchObject({ kind: "inactive" });
  });

  it("a running write keeps its upload from expiring, and its commit moves the end", async () => {
    const { state, passTime } = under();
    const upload = await created(state, { ttlMs: hourMs });
    const lease = await begun(state, upload);
    await passTime(5 * hourMs);
    expect(await state.beginWrite(beginOf(upload))).toMatchObject({ kind: "locked" });
    const { upload: after, now } = await committed(state, lease, 10, { ttlMs: hourMs });
    expect(after.expiresAt).toBe(now + hourMs);
  });

  it("a process that still holds the last lease goes on in its segment at the same fence", async () => {
    const { state } = under();
    const upload = await created(state, { sizeBytes: 100_000 });
    let lease = await begun(state, upload);
    for (let length = 1; length <= 20; length += 1) {
      await committed(state, lease, length);
      const held = { fence: lease.upload.fence, seq: lease.segment.seq };
      lease = await begun(state, upload, { offset: length, held });
      expect(lease.segment.length).toBe(length);
    }
    expect(lease.upload.fence).toBe(1);
    expect(await state.segments(upload.handle)).toHaveLength(1);
  });

  it("without what it held, the same process gets a new fence and a new segment", async () => {
    const { state } = under();
    const upload = await written(state, await created(state), 300);
    const lease = await begun(state, upload);
    expect(lease.upload.fence).toBe(2);
    expect(lease.segment).toMatchObject({ seq: 1, start: 300, length: 0, fence: 2 });
  });

  it("what a process held is worth nothing once another has written", async () => {
    const { state } = under();
    const first = await begun(state, await created(state));
    await committed(state, first, 100);
    const second = await begun(state, first.upload, { owner: "p_two" });
    await committed(state, second, 50);
    const held = { fence: first.upload.fence, seq: first.segment.seq };
    const third = await begun(state, first.upload, { held, offset: 150 });
    expect(third.upload.fence).toBe(3);
    expect(third.segment).toMatchObject({ seq: 2, start: 150, fence: 3 });
    expect(await state.segments(first.upload.handle)).toMatchObject([
      { seq: 0, start: 0, length: 100, fence: 1 },
      { seq: 1, start: 100, length: 50, fence: 2 },
    ]);
  });

  it("an active lease is taken over by naming its fence, and the writer before can change nothing any more", async () => {
    const { state, other } = under();
    const upload = await created(state);
    const first = await begun(state, upload);
    await committed(state, first, 100, { active: true });
    expect(await other.beginWrite(beginOf(upload, { owner: "p_two", takeOverFence: 0 }))).toMatchObject({
      kind: "locked",
    });
    const second = await begun(other, upload, { owner: "p_two", takeOverFence: first.upload.fence });
    expect(second.upload).toMatchObject({ fence: 2, leaseOwner: "p_two", leaseActive: true, offset: 100 });
    expect(second.segment).toMatchObject({ seq: 1, start: 100, length: 0 });
    const before = await found(state, upload.handle);

    expect(await state.commitWrite(commitOf(first, 400))).toEqual({ kind: "fenced", upload: before });
    await state.releaseWrite(upload.handle, "p_one", first.upload.fence);
    await expectUnchanged(state, before);
    const again = beginOf(upload, { takeOverFence: first.upload.fence, owner: "p_three" });
    expect(await state.beginWrite(again)).toMatchObject({ kind: "locked" });
    expect((await committed(other, second, 900)).upload.offset).toBe(1_000);
  });

  it("a take-over by the same process is a new lease too", async () => {
    const { state } = under();
    const first = await begun(state, await created(state));
    await committed(state, first, 100, { active: true });
    const held = { fence: first.upload.fence, seq: first.segment.seq };
    const second = await begun(state, first.upload, { held, takeOverFence: first.upload.fence });
    expect(second.upload.fence).toBe(2);
    expect(second.segment).toMatchObject({ seq: 1, start: 100, fence: 2 });
    expect(await state.commitWrite(commitOf(first, 200))).toMatchObject({ kind: "fenced" });
  });

  it("a segment that stayed empty makes room for the next one, and its blob is garbage", async () => {
    const { state } = under();
    const upload = await created(state);
    const [first, second] = [newBlob(), newBlob()];
    const lease = await begun(state, upload, { blob: first });
    await state.releaseWrite(upload.handle, "p_one", lease.upload.fence);
    const next = await begun(state, upload, { blob: second, owner: "p_two" });
    expect(next.segment).toMatchObject({ seq: 0, start: 0, blob: second, fence: 2 });
    expect(await state.garbage(0, 10)).toEqual([first]);
    expect(await state.commitWrite(commitOf(lease, 5))).toMatchObject({ kind: "fenced" });
  });

  it("a size declared later is kept, counted, and cannot be below the offset or be changed", async () => {
    const { state } = under();
    const upload = await written(state, await created(state, { sizeBytes: null }), 300);
    expect(await state.beginWrite(beginOf(upload, { declareSize: 299 }))).toMatchObject({
      kind: "size",
      upload,
    });
    const quota = { maxBytes: 999, maxFiles: 1 };
    expect(await state.beginWrite(beginOf(upload, { declareSize: 1_000, quota }))).toEqual({
      kind: "quota",
      limit: "bytes",
      used: 300,
    });
    await expectUnchanged(state, upload);
    const lease = await begun(state, upload, { declareSize: 999, quota });
    expect(lease.upload.sizeBytes).toBe(999);
    await committed(state, lease, 0);
    expect(await state.beginWrite(beginOf(upload, { declareSize: 1_000 }))).toMatchObject({ kind: "size" });
    expect(await state.beginWrite(beginOf(upload, { declareSize: 999, quota }))).toMatchObject({
      kind: "ok",
    });
    expect(await state.usage("ada")).toEqual({ bytes: 999, files: 1 });
  });

  it("releasing a write leaves the lease with its owner and not active", async () => {
    const { state } = under();
    const upload = await created(state);
    const lease = await begun(state, upload);
    await state.releaseWrite(upload.handle, "p_two", lease.upload.fence);
    await state.releaseWrite(upload.handle, "p_one", lease.upload.fence + 1);
    await expectUnchanged(state, lease.upload);
    await state.releaseWrite(upload.handle, "p_one", lease.upload.fence);
    await expectUnchanged(state, { ...lease.upload, leaseActive: false });
    const held = { fence: lease.upload.fence, seq: lease.segment.seq };
    expect((await begun(state, upload, { held })).segment).toEqual(lease.segment);
  });

  it("a verification is not ended by a late release of the write before", async () => {
    const { state } = under();
    const upload = await finished(state, "verifying");
    await state.releaseWrite(upload.handle, "p_one", upload.fence);
    await expectUnchanged(state, upload);
  });

  it("a request for the lease reaches its holder, with its checkpoint and on asking", async () => {
    const { state, other } = under();
    const upload = await created(state);
    const lease = await begun(state, upload);
    const { handle } = upload;
    expect(await committed(state, lease, 10, { active: true })).toMatchObject({ leaseRequest: null });
    expect(await other.requestLease(handle, lease.upload.fence, "if_idle")).toBe(true);
    expect(await state.leaseRequests("p_one")).toEqual([{ handle, fence: 1, kind: "if_idle" }]);
    expect(await state.leaseRequests("p_two")).toEqual([]);
    expect(await other.requestLease(handle, lease.upload.fence, "end")).toBe(true);
    expect(await other.requestLease(handle, lease.upload.fence, "if_idle")).toBe(true);
    expect(await state.leaseRequests("p_one")).toEqual([{ handle, fence: 1, kind: "end" }]);
    expect(await committed(state, lease, 20, { active: true })).toMatchObject({ leaseRequest: "end" });
    expect(await state.leaseRequests("p_one")).toHaveLength(1);
    expect(await committed(state, lease, 30)).toMatchObject({ leaseRequest: "end" });
    expect(await state.leaseRequests("p_one")).toEqual([]);
    expect(await other.requestLease(handle, lease.upload.fence, "end")).toBe(false);
    const next = await begun(state, upload);
    expect(await state.leaseRequests("p_one")).toEqual([]);
    expect(await committed(state, next, 5, { active: true })).toMatchObject({ leaseRequest: null });
  });

  it("a request for a lease of another fence, an ended one or an unknown handle is refused", async () => {
    const { state } = under();
    const upload = await created(state);
    const lease = await begun(state, upload);
    expect(await state.requestLease(upload.handle, lease.upload.fence + 1, "end")).toBe(false);
    expect(await state.requestLease("fh_none", 1, "end")).toBe(false);
    await state.releaseWrite(upload.handle, "p_one", lease.upload.fence);
    expect(await state.requestLease(upload.handle, lease.upload.fence, "end")).toBe(false);
    const verifying = await finished(state, "verifying");
    expect(await state.requestLease(verifying.handle, verifying.fence, "end")).toBe(false);
    expect(await state.leaseRequests("p_one")).toEqual([]);
  });

  it("the holder may refuse a request that depends on its idleness, and no stronger one", async () => {
    const { state } = under();
    const { upload } = await begun(state, await created(state));
    await state.requestLease(upload.handle, upload.fence, "if_idle");
    await state.refuseLease(upload.handle, upload.fence + 1);
    expect(await state.leaseRequests("p_one")).toHaveLength(1);
    await state.refuseLease(upload.handle, upload.fence);
    expect(await state.leaseRequests("p_one")).toEqual([]);
    await state.requestLease(upload.handle, upload.fence, "end");
    await state.refuseLease(upload.handle, upload.fence);
    expect(await state.leaseRequests("p_one")).toHaveLength(1);
  });

  it("releasing or taking over clears the request", async () => {
    const { state } = under();
    const upload = await created(state);
    const first = await begun(state, upload);
    await state.requestLease(upload.handle, first.upload.fence, "end");
    const second = await begun(state, upload, { takeOverFence: first.upload.fence });
    expect(await state.leaseRequests("p_one")).toEqual([]);
    await state.requestLease(upload.handle, second.upload.fence, "end");
    await state.releaseWrite(upload.handle, "p_one", second.upload.fence);
    expect(await state.leaseRequests("p_one")).toEqual([]);
    expect((await found(state, upload.handle)).expiresAt).toBe(upload.createdAt + dayMs);
  });
}
