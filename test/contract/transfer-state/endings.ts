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
  newTicket,
  type StateUnderTest,
  written,
} from "./fixture.ts";

export function endings(under: () => StateUnderTest): void {
  it("a removed upload is gone with tickets and segments, its blobs are garbage and its usage falls", async () => {
    const { state, recount } = under();
    const ticket = newTicket();
    const [one, two] = [newBlob(), newBlob()];
    const upload = await created(state, { ticket });
    await committed(state, await begun(state, upload, { blob: one }), 100);
    const lease = await begun(state, upload, { blob: two });
    const last = (await committed(state, lease, 200, { active: true })).upload;
    await created(state, { sizeBytes: 5 });
    expect(await state.removeUpload(upload.handle, null)).toEqual({ removed: true, upload: last });
    expect(await state.findUpload(upload.handle)).toBeNull();
    expect(await state.findByTicket(ticket.hash)).toBeNull();
    expect(await state.segments(upload.handle)).toEqual([]);
    expect((await state.garbage(0, 10)).sort()).toEqual([one, two].sort());
    expect(await state.usage("ada")).toEqual({ bytes: 5, files: 1 });
    expect(await recount("ada")).toEqual({ bytes: 5, files: 1 });
    expect(await state.removeUpload(upload.handle, null)).toEqual({ removed: false, upload: null });
  });

  it("removal on condition of a fence spares an upload that has moved on or is being written", async () => {
    const { state } = under();
    const upload = await created(state);
    const lease = await begun(state, upload);
    expect(await state.removeUpload(upload.handle, 0)).toEqual({ removed: false, upload: lease.upload });
    expect(await state.removeUpload(upload.handle, 1)).toEqual({ removed: false, upload: lease.upload });
    await expectUnchanged(state, lease.upload);
    const { upload: idle } = await committed(state, lease, 1);
    expect(await state.removeUpload(upload.handle, 1)).toEqual({ removed: true, upload: idle });
  });

  it("a blob that two uploads name is garbage only when neither does", async () => {
    const { state } = under();
    const blob = newBlob();
    const first = await created(state);
    const second = await created(state);
    for (const upload of [first, second]) await committed(state, await begun(state, upload, { blob }), 10);
    await state.removeUpload(first.handle, null);
    expect(await state.garbage(0, 10)).toEqual([]);
    await state.removeUpload(second.handle, null);
    expect(await state.garbage(0, 10)).toEqual([blob]);
  });

  it("uploads of dead owners with an active lease are orphans, with their last segment, and no others", async () => {
    const { state } = under();
    const orphan = await begun(state, await created(state), { owner: "p_dead" });
    await committed(state, orphan, 100, { active: true });
    const idle = await begun(state, await created(state), { owner: "p_dead" });
    await committed(state, idle, 100);
    const alive = await begun(state, await created(state), { owner: "p_alive" });
    const verifying = await begun(state, await created(state), { owner: "p_dead" });
    await committed(state, verifying, 1_000, { status: "verifying" });
    expect(await state.orphans([], 10)).toEqual([]);
    expect(await state.orphans(["p_dead", "p_other"], 10)).toEqual([
      { upload: await found(state, orphan.upload.handle), segment: { ...orphan.segment, length: 100 } },
    ]);
    expect(await state.orphans(["p_alive"], 10)).toEqual([{ upload: alive.upload, segment: alive.segment }]);
    expect(await state.orphans(["p_dead", "p_alive"], 1)).toHaveLength(1);
  });

  it("an adopted orphan keeps its bytes, has no active lease, and its old writer is fenced off", async () => {
    const { state } = under();
    const lease = await begun(state, await created(state), { owner: "p_dead" });
    const before = (await committed(state, lease, 300, { active: true, bytesPerSecond: 9 })).upload;
    expect(await state.adoptOrphan(before.handle, before.fence + 1, null)).toBe(false);
    expect(await state.adoptOrphan("fh_none", 1, null)).toBe(false);
    await expectUnchanged(state, before);
    expect(await state.adoptOrphan(before.handle, before.fence, 300)).toBe(true);
    await expectUnchanged(state, {
      ...before,
      fence: before.fence + 1,
      leaseActive: false,
      bytesPerSecond: null,
    });
    expect(await state.adoptOrphan(before.handle, before.fence, 0)).toBe(false);
    expect(await state.commitWrite(commitOf(lease, 400))).toMatchObject({ kind: "fenced" });
    const next = await begun(state, before, {
      offset: 300,
      held: { fence: before.fence, seq: 0 },
      owner: "p_dead",
    });
    expect(next.segment).toMatchObject({ seq: 1, start: 300 });
  });

  it("an orphan whose file is shorter than what was committed goes back to what is there", async () => {
    const { state, recount } = under();
    const upload = await created(state, { sizeBytes: null });
    await committed(state, await begun(state, upload, { owner: "p_dead" }), 100);
    const lease = await begun(state, upload, { owner: "p_dead" });
    await committed(state, lease, 200, { active: true });
    expect(await state.adoptOrphan(upload.handle, lease.upload.fence, 150)).toBe(true);
    expect(await found(state, upload.handle)).toMatchObject({ offset: 150, leaseActive: false });
    expect(await state.segments(upload.handle)).toMatchObject([{ length: 100 }, { length: 50 }]);
    expect(await state.usage("ada")).toEqual({ bytes: 150, files: 1 });
    expect(await recount("ada")).toEqual({ bytes: 150, files: 1 });
    const again = await begun(state, upload, { offset: 150, owner: "p_dead" });
    await committed(state, again, 10, { active: true });
    expect(await state.adoptOrphan(upload.handle, again.upload.fence, 1_000)).toBe(true);
    expect((await found(state, upload.handle)).offset).toBe(160);
  });

  it("an upload that nobody writes goes back too, over as many segments as are missing, and is left alone where none is", async () => {
    const { state, recount } = under();
    const upload = await created(state, { sizeBytes: null });
    const blobs = [newBlob(), newBlob(), newBlob()];
    for (const blob of blobs)
      await committed(state, await begun(state, upload, { owner: "p_dead", blob }), 100);
    const before = await found(state, upload.handle);
    expect(await state.adoptOrphan(upload.handle, before.fence, null)).toBe(false);
    expect(await state.adoptOrphan(upload.handle, before.fence, 300)).toBe(false);
    await expectUnchanged(state, before);
    expect(await state.adoptOrphan(upload.handle, before.fence, 40)).toBe(true);
    expect(await found(state, upload.handle)).toMatchObject({
      offset: 40,
      status: "receiving",
      leaseActive: false,
      fence: before.fence + 1,
    });
    expect(await state.segments(upload.handle)).toMatchObject([{ start: 0, length: 40 }]);
    expect(await state.usage("ada")).toEqual({ bytes: 40, files: 1 });
    expect(await recount("ada")).toEqual({ bytes: 40, files: 1 });
    expect((await state.garbage(0, 10)).toSorted()).toEqual(blobs.slice(1).toSorted());
  });

  it("an upload that is being verified without all of its bytes takes bytes again", async () => {
    const { state } = under();
    const lease = await begun(state, await created(state), { owner: "p_dead" });
    const { upload } = await committed(state, lease, 1_000, { status: "verifying" });
    expect(await state.adoptOrphan(upload.handle, upload.fence, null)).toBe(false);
    expect(await state.adoptOrphan(upload.handle, upload.fence, 0)).toBe(true);
    expect(await found(state, upload.handle)).toMatchObject({
      offset: 0,
      status: "receiving",
      leaseActive: false,
    });
    const again = await begun(state, upload, { offset: 0, owner: "p_alive" });
    expect((await committed(state, again, 1_000, { status: "verifying" })).upload.offset).toBe(1_000);
  });

  it("the uploads that dead owners wrote lately and left idle are told page by page, and no others", async () => {
    const { state } = under();
    const idle: string[] = [];
    for (let count = 0; count < 5; count += 1) {
      const lease = await begun(state, await created(state), { owner: count === 3 ? "p_other" : "p_dead" });
      idle.push((await committed(state, lease, 100)).upload.handle);
    }
    await committed(state, await begun(state, await created(state), { owner: "p_alive" }), 100);
    await committed(state, await begun(state, await created(state), { owner: "p_dead" }), 100, {
      active: true,
    });
    const empty = await begun(state, await created(state), { owner: "p_dead" });
    await state.releaseWrite(empty.upload.handle, "p_dead", empty.upload.fence);
    const done = await begun(state, await created(state), { owner: "p_dead" });
    await committed(state, done, 1_000, { status: "complete", sha256: "f" });

    const owners = ["p_dead", "p_other"];
    const told: string[] = [];
    let page = await state.idleUploads(owners, 0, null, 2);
    for (; page.next !== null; page = await state.idleUploads(owners, 0, page.next, 2)) {
      expect(page.uploads).toHaveLength(2);
      told.push(...page.uploads.map(({ handle }) => handle));
    }
    told.push(...page.uploads.map(({ handle }) => handle));
    expect(told.toSorted()).toEqual(idle.toSorted());
    const { now } = (await state.findUpload(idle[0] ?? "")) ?? { now: 0 };
    expect((await state.idleUploads(owners, now + 1, null, 10)).uploads).toEqual([]);
  });

  it("all segments of a complete upload become one, and their blobs garbage", async () => {
    const { state } = under();
    let upload = await created(state);
    const old = [newBlob(), newBlob(), newBlob()];
    for (const [index, blob] of old.entries()) {
      const lease = await begun(state, upload, { blob });
      const length = index === 2 ? 800 : 100;
      const status = index === 2 ? "complete" : "receiving";
      upload = (
        await committed(state, lease, length, { status, sha256: index === 2 ? "e".repeat(64) : null })
      ).upload;
    }
    const blob = newBlob();
    await state.announceBlob(blob);
    expect(await state.replaceSegments(upload.handle, upload.generation + 1, { blob, length: 1_000 })).toBe(
      false,
    );
    expect(await state.garbage(0, 10)).toEqual([blob]);
    expect(await state.replaceSegments(upload.handle, upload.generation, { blob, length: 1_000 })).toBe(true);
    expect(await state.segments(upload.handle)).toMatchObject([
      { start: 0, length: 1_000, blob, blobOffset: 0 },
    ]);
    expect((await state.garbage(0, 10)).sort()).toEqual(old.sort());
    await expectUnchanged(state, upload);
    expect(await state.usage("ada")).toEqual({ bytes: 1_000, files: 1 });
  });

  it("segments are replaced only in a complete upload, and by as many bytes", async () => {
    const { state } = under();
    const receiving = await written(state, await created(state), 10);
    const blob = newBlob();
    expect(await state.replaceSegments(receiving.handle, receiving.generation, { blob, length: 10 })).toBe(
      false,
    );
    expect(await state.replaceSegments("fh_none", 1, { blob, length: 10 })).toBe(false);
    const complete = await finished(state, "complete");
    await expect(
      state.replaceSegments(complete.handle, complete.generation, { blob, length: 999 }),
    ).rejects.toThrow();
    expect(await state.segments(complete.handle)).toHaveLength(1);
    expect(await state.unknownBlobs([blob])).toEqual([blob]);
  });

  it("expiry marks on the first look and removes on the second, after the grace", async () => {
    const { state, passTime } = under();
    const due = await written(state, await created(state, { ttlMs: hourMs }), 10, { ttlMs: hourMs });
    const later = await created(state, { ttlMs: dayMs });
    const never = await created(state, { ttlMs: null });
    expect(await state.expire(hourMs, 10)).toEqual({ marked: 0, unmarked: 0, removed: [] });
    await passTime(2 * hourMs);
    expect(await state.expire(hourMs, 10)).toEqual({ marked: 1, unmarked: 0, removed: [] });
    await passTime(hourMs - 60_000);
    expect(await state.expire(hourMs, 10)).toEqual({ marked: 0, unmarked: 0, removed: [] });
    await passTime(120_000);
    expect(await state.expire(hourMs, 10)).toEqual({ marked: 0, unmarked: 0, removed: [due.handle] });
    expect(await state.findUpload(due.handle)).toBeNull();
    expect(await state.garbage(0, 10)).toHaveLength(1);
    expect(await state.usage("ada")).toEqual({ bytes: 2_000, files: 2 });
    await found(state, later.handle);
    await found(state, never.handle);
  });

  it("expiry never is both looks in one call, even without a grace", async () => {
    const { state, passTime } = under();
    const upload = await created(state, { ttlMs: hourMs });
    await passTime(hourMs);
    expect(await state.expire(0, 10)).toEqual({ marked: 1, unmarked: 0, removed: [] });
    expect(await state.expire(0, 10)).toEqual({ marked: 0, unmarked: 0, removed: [upload.handle] });
  });

  it("a clock that jumps ahead and comes back removes nothing", async () => {
    const { state, passTime } = under();
    const upload = await created(state, { ttlMs: dayMs });
    await passTime(10 * dayMs);
    expect(await state.expire(hourMs, 10)).toMatchObject({ marked: 1 });
    await passTime(-10 * dayMs);
    expect(await state.expire(hourMs, 10)).toEqual({ marked: 0, unmarked: 1, removed: [] });
    // The next first look is a first look again.
    await passTime(2 * dayMs);
    expect(await state.expire(hourMs, 10)).toEqual({ marked: 1, unmarked: 0, removed: [] });
    await found(state, upload.handle);
  });

  it("a write after the clock has come back makes the next look a first one", async () => {
    const { state, passTime } = under();
    const upload = await created(state, { ttlMs: dayMs });
    await passTime(10 * dayMs);
    await state.expire(hourMs, 10);
    await passTime(-10 * dayMs);
    const lease = await begun(state, upload);
    await passTime(20 * dayMs);
    expect(await state.expire(hourMs, 10)).toEqual({ marked: 0, unmarked: 0, removed: [] });
    await state.releaseWrite(upload.handle, "p_one", lease.upload.fence);
    expect(await state.expire(hourMs, 10)).toEqual({ marked: 1, unmarked: 0, removed: [] });
  });

  it("more marked records than one call takes in are not removed after the clock has come back", async () => {
    const { state, passTime } = under();
    for (let index = 0; index < 4; index += 1) await created(state, { ttlMs: dayMs });
    await passTime(10 * dayMs);
    await state.expire(0, 10);
    await passTime(-10 * dayMs);
    for (let call = 0; call < 4; call += 1) {
      expect(await state.expire(0, 1)).toEqual({ marked: 0, unmarked: 1, removed: [] });
    }
    expect(await state.usage("ada")).toMatchObject({ files: 4 });
  });

  it("a record that is due and was marked by a clock far ahead is still removed within the grace", async () => {
    const { state, passTime } = under();
    const upload = await created(state, { ttlMs: hourMs });
    await passTime(1_000 * dayMs);
    await state.expire(hourMs, 10);
    await passTime(-998 * dayMs);
    expect(await state.expire(hourMs, 10)).toMatchObject({ removed: [] });
    await passTime(2 * hourMs);
    expect(await state.expire(hourMs, 10)).toMatchObject({ removed: [upload.handle] });
  });

  it("an upload that is being written, verified or has gone on is neither marked nor removed", async () => {
    const { state, passTime } = under();
    const lease = await begun(state, await created(state, { ttlMs: hourMs }));
    await finished(state, "verifying", 100, { ttlMs: hourMs });
    await passTime(2 * dayMs);
    expect(await state.expire(0, 10)).toEqual({ marked: 0, unmarked: 0, removed: [] });
    await state.releaseWrite(lease.upload.handle, "p_one", lease.upload.fence);
    expect(await state.expire(0, 10)).toEqual({ marked: 1, unmarked: 0, removed: [] });
    const wrong = await finished(state, "mismatch", 100, { ttlMs: hourMs });
    await passTime(2 * dayMs);
    expect(await state.expire(dayMs * 30, 10)).toEqual({ marked: 1, unmarked: 0, removed: [] });
    await state.startOver(wrong.handle, newTicket(), dayMs);
    expect(await state.expire(0, 10)).toEqual({ marked: 0, unmarked: 0, removed: [lease.upload.handle] });
    await found(state, wrong.handle);
  });

  it("expiry takes at most so many of each at a time", async () => {
    const { state, passTime } = under();
    for (let index = 0; index < 5; index += 1) await created(state, { ttlMs: hourMs });
    await passTime(hourMs);
    expect(await state.expire(0, 2)).toMatchObject({ marked: 2, removed: [] });
    const second = await state.expire(0, 2);
    expect(second.removed).toHaveLength(2);
    expect(second.marked).toBe(2);
    expect((await state.expire(0, 2)).removed).toHaveLength(2);
    expect((await state.expire(0, 2)).removed).toHaveLength(1);
    expect(await state.usage("ada")).toEqual({ bytes: 0, files: 0 });
  });

  it("garbage is handed out after the grace, which counts from the last reference", async () => {
    const { state, passTime } = under();
    const blob = newBlob();
    await state.announceBlob(blob);
    await passTime(hourMs - 60_000);
    expect(await state.garbage(hourMs, 10)).toEqual([]);
    await state.announceBlob(blob);
    await passTime(120_000);
    expect(await state.garbage(hourMs, 10)).toEqual([]);
    await passTime(hourMs);
    expect(await state.garbage(hourMs, 10)).toEqual([blob]);
    await state.forgetGarbage([blob]);
    expect(await state.garbage(hourMs, 10)).toEqual([]);
    expect(await state.unknownBlobs([blob])).toEqual([blob]);
  });

  it("a blob that a segment names is never garbage, wherever it was listed before or after", async () => {
    const { state, passTime } = under();
    const blob = newBlob();
    await state.addGarbage([blob]);
    const upload = await created(state);
    const lease = await begun(state, upload, { blob });
    await state.addGarbage([blob]);
    await state.announceBlob(blob);
    await passTime(dayMs);
    expect(await state.garbage(0, 10)).toEqual([]);
    await state.forgetGarbage([blob]);
    await committed(state, lease, 10);
    await state.removeUpload(upload.handle, null);
    expect(await state.garbage(hourMs, 10)).toEqual([]);
    expect(await state.garbage(0, 10)).toEqual([blob]);
  });

  it("garbage comes at most so many at a time, the oldest first", async () => {
    const { state, passTime } = under();
    const blobs = [newBlob(), newBlob(), newBlob()];
    for (const blob of blobs) {
      await state.addGarbage([blob]);
      await passTime(1_000);
    }
    expect(await state.garbage(0, 2)).toEqual(blobs.slice(0, 2));
    await state.forgetGarbage(blobs.slice(0, 2));
    expect(await state.garbage(0, 2)).toEqual(blobs.slice(2));
  });

  it("unknown blobs are those that neither a segment nor the garbage names", async () => {
    const { state } = under();
    const [named, listed, stray] = [newBlob(), newBlob(), newBlob()];
    await begun(state, await created(state), { blob: named });
    await state.addGarbage([listed]);
    expect(await state.unknownBlobs([named, listed, stray])).toEqual([stray]);
    expect(await state.unknownBlobs([])).toEqual([]);
    const many = Array.from({ length: 1_000 }, newBlob);
    expect(await state.unknownBlobs(many)).toEqual(many);
    await expect(state.unknownBlobs([...many, stray])).rejects.toThrow();
  });

  it("processes are known from their registration to their removal, with the time they were last seen", async () => {
    const { state, other, passTime } = under();
    expect((await state.processes()).processes).toEqual([]);
    await state.registerProcess("p_one", 4711);
    await passTime(60_000);
    await other.registerProcess("p_two", 4712);
    const before = await state.processes();
    expect(before.processes).toMatchObject([
      { id: "p_one", pid: 4711 },
      { id: "p_two", pid: 4712 },
    ]);
    expect(before.now - (before.processes[0]?.seenAt ?? 0)).toBeGreaterThanOrEqual(60_000);
    await state.heartbeat("p_one");
    const after = await state.processes();
    expect(after.processes[0]?.startedAt).toBe(before.processes[0]?.startedAt);
    expect(after.now - (after.processes[0]?.seenAt ?? 0)).toBeLessThan(60_000);
    await state.removeProcess("p_one");
    await state.removeProcess("p_one");
    expect((await other.processes()).processes).toMatchObject([{ id: "p_two" }]);
  });

  it("a removed process leaves no active lease, and its late commits are fenced off", async () => {
    const { state } = under();
    const active = await begun(state, await created(state));
    const idle = await written(state, await created(state), 10);
    await state.requestLease(active.upload.handle, active.upload.fence, "end");
    await state.removeProcess("p_one");
    await expectUnchanged(state, { ...active.upload, leaseActive: false });
    await expectUnchanged(state, idle);
    expect(await state.leaseRequests("p_one")).toEqual([]);
    expect(await state.commitWrite(commitOf(active, 10))).toMatchObject({ kind: "fenced" });
    expect(await state.beginWrite(beginOf(active.upload, { owner: "p_two" }))).toMatchObject({ kind: "ok" });
  });
}
