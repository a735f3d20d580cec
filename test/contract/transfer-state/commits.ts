import { expect, it } from "vitest";
import {
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

const digest = "ab".repeat(32);

export function commits(under: () => StateUnderTest): void {
  it("a checkpoint makes bytes count, moves the end and shows the speed, and the lease stays active", async () => {
    const { state } = under();
    const lease = await begun(state, await created(state, { ttlMs: hourMs }));
    const { upload, now } = await committed(state, lease, 400, { active: true, bytesPerSecond: 1234.5 });
    expect(upload).toEqual({
      ...lease.upload,
      offset: 400,
      updatedAt: now,
      expiresAt: now + dayMs,
      bytesPerSecond: 1234.5,
      leaseActive: true,
    });
    await expectUnchanged(state, upload);
    expect(await state.segments(upload.handle)).toEqual([{ ...lease.segment, length: 400 }]);
  });

  it("the last commit of a request leaves the lease with its owner, not active and without a speed", async () => {
    const { state } = under();
    const lease = await begun(state, await created(state));
    await committed(state, lease, 400, { active: true, bytesPerSecond: 99 });
    const { upload } = await committed(state, lease, 500, { bytesPerSecond: 99 });
    expect(upload).toMatchObject({
      offset: 500,
      leaseOwner: "p_one",
      leaseActive: false,
      bytesPerSecond: null,
    });
    await expectUnchanged(state, upload);
    expect(await state.commitWrite(commitOf(lease, 600))).toEqual({ kind: "fenced", upload });
  });

  it("a commit without new bytes leaves the time of the last byte alone", async () => {
    const { state, passTime } = under();
    const lease = await begun(state, await created(state));
    await committed(state, lease, 10, { active: true });
    await passTime(hourMs);
    const before = await found(state, lease.upload.handle);
    const { upload, now } = await committed(state, lease, 10);
    expect(upload.updatedAt).toBe(before.updatedAt);
    expect(upload.expiresAt).toBe(now + dayMs);
  });

  it("the size becomes known with the end of the body", async () => {
    const { state } = under();
    const lease = await begun(state, await created(state, { sizeBytes: null }));
    const { upload, now } = await committed(state, lease, 777, {
      sizeBytes: 777,
      status: "complete",
      sha256: digest,
    });
    expect(upload).toMatchObject({
      sizeBytes: 777,
      offset: 777,
      status: "complete",
      sha256: digest,
      completedAt: now,
    });
    await expectUnchanged(state, upload);
    expect(await state.usage("ada")).toEqual({ bytes: 777, files: 1 });
  });

  it("a complete upload has no active lease, a digest, a time and the life that was given", async () => {
    const { state } = under();
    const lease = await begun(state, await created(state));
    const { upload, now } = await committed(state, lease, 1_000, {
      active: true,
      status: "complete",
      sha256: digest,
      ttlMs: null,
      bytesPerSecond: 5,
    });
    expect(upload).toMatchObject({
      status: "complete",
      sha256: digest,
      completedAt: now,
      expiresAt: null,
      leaseActive: false,
      bytesPerSecond: null,
    });
    await expectUnchanged(state, upload);
  });

  it("an empty upload completes without a byte", async () => {
    const { state } = under();
    const upload = await finished(state, "complete", 0);
    expect(upload).toMatchObject({ status: "complete", offset: 0, sizeBytes: 0 });
    expect(await state.segments(upload.handle)).toEqual([]);
  });

  it("a verification keeps the lease active for its owner whatever the commit says", async () => {
    const { state } = under();
    const upload = await finished(state, "verifying");
    expect(upload).toMatchObject({
      status: "verifying",
      leaseActive: true,
      leaseOwner: "p_one",
      completedAt: null,
    });
  });

  it("commits by another owner, of another fence or segment, or of a finished upload are fenced off", async () => {
    const { state } = under();
    const lease = await begun(state, await created(state));
    const { upload } = lease;
    for (const more of [{ owner: "p_two" }, { fence: 2 }, { fence: 0 }, { seq: 1 }]) {
      expect(await state.commitWrite(commitOf(lease, 10, more))).toEqual({ kind: "fenced", upload });
    }
    expect(await state.commitWrite(commitOf(lease, 10, { handle: "fh_none" }))).toEqual({
      kind: "fenced",
      upload: null,
    });
    await expectUnchanged(state, upload);
    const done = (await committed(state, lease, 1_000, { status: "verifying" })).upload;
    expect(await state.commitWrite(commitOf(lease, 1_000))).toEqual({ kind: "fenced", upload: done });
    await state.removeUpload(upload.handle, null);
    expect(await state.commitWrite(commitOf(lease, 1_000))).toEqual({ kind: "fenced", upload: null });
  });

  it("committed bytes never become fewer, sizes never change, and no offset passes the size", async () => {
    const { state } = under();
    const lease = await begun(state, await created(state));
    const { upload } = await committed(state, lease, 500, { active: true });
    await expect(state.commitWrite(commitOf(lease, 499))).rejects.toThrow();
    await expect(state.commitWrite(commitOf(lease, 1_001))).rejects.toThrow();
    await expect(state.commitWrite(commitOf(lease, 600, { sizeBytes: 600 }))).rejects.toThrow();
    await expect(
      state.commitWrite(commitOf(lease, 600, { status: "complete", sha256: digest })),
    ).rejects.toThrow();
    await expectUnchanged(state, upload);
  });

  it("bytes of unknown total beyond the quota are refused and nothing of them counts", async () => {
    const { state } = under();
    await created(state, { sizeBytes: 500 });
    const lease = await begun(state, await created(state, { sizeBytes: null }));
    const quota = { maxBytes: 600, maxFiles: null };
    const { upload } = await committed(state, lease, 100, { active: true, quota });
    expect(await state.commitWrite(commitOf(lease, 101, { quota }))).toEqual({
      kind: "quota",
      limit: "bytes",
      used: 600,
    });
    await expectUnchanged(state, upload);
    expect(await state.usage("ada")).toEqual({ bytes: 600, files: 2 });
    // What was counted before is not refused, even where the limit has been lowered since.
    await committed(state, lease, 100, { quota: { maxBytes: 10, maxFiles: 1 } });
  });

  it("segments lie end to end in order and add up to the offset", async () => {
    const { state } = under();
    let upload = await created(state);
    for (const length of [10, 200, 1, 389]) upload = await written(state, upload, length);
    const segments = await state.segments(upload.handle);
    expect(segments.map(({ start, length }) => [start, length])).toEqual([
      [0, 10],
      [10, 200],
      [210, 1],
      [211, 389],
    ]);
    expect(upload.offset).toBe(600);
  });

  it("a download finds record and segments in one question, segments only of what is complete", async () => {
    const { state } = under();
    const complete = await finished(state, "complete");
    const receiving = await written(state, await created(state), 10);
    const segmentsFor = async (handle: string) => {
      const ticket = newTicket({ kind: "download" });
      await state.addTicket(handle, null, ticket);
      const view = await state.findDownload(ticket.hash);
      expect(view).toEqual({
        ...(await state.findByTicket(ticket.hash)),
        now: view?.now,
        segments: view?.segments,
      });
      return view?.segments;
    };
    expect(await segmentsFor(complete.handle)).toEqual(await state.segments(complete.handle));
    expect(await state.segments(complete.handle)).toHaveLength(1);
    expect(await segmentsFor(receiving.handle)).toEqual([]);
    expect(await state.findDownload("0".repeat(72))).toBeNull();
  });

  it("a verdict ends a verification of its generation, once", async () => {
    const { state } = under();
    const upload = await finished(state, "verifying");
    const verdict = { status: "complete", sha256: digest, ttlMs: null } as const;
    expect(await state.settle(upload.handle, upload.generation + 1, verdict)).toBeNull();
    expect(await state.settle("fh_none", 1, verdict)).toBeNull();
    const settled = await state.settle(upload.handle, upload.generation, verdict);
    expect(settled).toMatchObject({
      status: "complete",
      sha256: digest,
      leaseActive: false,
      expiresAt: null,
    });
    expect(settled?.completedAt).toBeGreaterThanOrEqual(upload.createdAt);
    expect(await found(state, upload.handle)).toEqual(settled);
    expect(
      await state.settle(upload.handle, upload.generation, { ...verdict, status: "mismatch" }),
    ).toBeNull();
    const other = await finished(state, "verifying");
    const bad = await state.settle(other.handle, other.generation, {
      ...verdict,
      status: "mismatch",
      ttlMs: hourMs,
    });
    expect(bad).toMatchObject({ status: "mismatch", sha256: digest, completedAt: null });
  });

  it("verifications of dead owners, or of none, are claimed once, at a new fence", async () => {
    const { state, other } = under();
    const mine = await finished(state, "verifying");
    const uploads = [];
    for (let index = 0; index < 5; index += 1) uploads.push(await finished(state, "verifying"));
    expect(await state.claimVerifications("p_new", ["p_gone"], 10)).toEqual([]);
    await state.settle(mine.handle, mine.generation, { status: "complete", sha256: digest, ttlMs: null });
    const [one, two] = await Promise.all([
      state.claimVerifications("p_new", ["p_gone", "p_one"], 3),
      other.claimVerifications("p_newer", ["p_one"], 3),
    ]);
    expect([...one, ...two].map(({ handle }) => handle).sort()).toEqual(
      uploads.map(({ handle }) => handle).sort(),
    );
    expect([one.length, two.length].sort()).toEqual([2, 3]);
    for (const upload of one) {
      expect(upload).toMatchObject({ status: "verifying", leaseOwner: "p_new", leaseActive: true, fence: 2 });
      await expectUnchanged(state, upload);
    }
    await state.removeProcess("p_new");
    expect(await state.claimVerifications("p_last", [], 10)).toHaveLength(one.length);
  });

  it("a mismatch starts over at 0 in a new generation with one new ticket", async () => {
    const { state } = under();
    const [oldTicket, download, newOne] = [newTicket(), newTicket({ kind: "download" }), newTicket()];
    const upload = await finished(state, "mismatch", 1_000, { ticket: oldTicket });
    await state.addTicket(upload.handle, null, download);
    const again = await state.startOver(upload.handle, newOne, hourMs);
    expect(again?.upload).toEqual({
      ...upload,
      status: "receiving",
      offset: 0,
      sha256: null,
      generation: upload.generation + 1,
      fence: upload.fence + 1,
      leaseOwner: null,
      leaseActive: false,
      expiresAt: (again?.now ?? 0) + hourMs,
    });
    expect(await found(state, upload.handle)).toEqual(again?.upload);
    expect(await state.findByTicket(oldTicket.hash)).toBeNull();
    expect(await state.findByTicket(download.hash)).toBeNull();
    expect((await state.findByTicket(newOne.hash))?.ticket.generation).toBe(upload.generation + 1);
    expect(await state.usage("ada")).toEqual({ bytes: 1_000, files: 1 });
  });

  it("only a mismatch starts over", async () => {
    const { state } = under();
    const ticket = newTicket();
    for (const upload of [
      await created(state),
      await finished(state, "complete"),
      await finished(state, "verifying"),
    ]) {
      expect(await state.startOver(upload.handle, ticket, hourMs)).toBeNull();
      await expectUnchanged(state, upload);
    }
    expect(await state.startOver("fh_none", ticket, hourMs)).toBeNull();
    expect(await state.findByTicket(ticket.hash)).toBeNull();
  });

  it("the bytes of the generation before stay until bytes of the new one are committed", async () => {
    const { state } = under();
    const [old, fresh] = [newBlob(), newBlob()];
    const lease = await begun(state, await created(state), { blob: old });
    const wrong = (await committed(state, lease, 1_000, { status: "mismatch", sha256: digest })).upload;
    const again = await state.startOver(wrong.handle, newTicket(), dayMs);
    if (again === null) throw new Error("Not started over");
    expect(await state.segments(wrong.handle)).toEqual([]);
    const next = await begun(state, again.upload, { blob: fresh, offset: 0 });
    expect(next.segment).toMatchObject({ generation: again.upload.generation, seq: 0, start: 0 });
    await committed(state, next, 0, { active: true });
    expect(await state.garbage(0, 10)).toEqual([]);
    expect(await state.unknownBlobs([old, fresh])).toEqual([]);
    await committed(state, next, 5);
    expect(await state.garbage(0, 10)).toEqual([old]);
    expect(await state.segments(wrong.handle)).toMatchObject([{ blob: fresh, length: 5 }]);
    expect(await state.commitWrite(commitOf(lease, 1_000))).toMatchObject({ kind: "fenced" });
  });

  it("an empty upload that starts over lets go of the generation before when it completes", async () => {
    const { state } = under();
    const wrong = await finished(state, "mismatch", 0);
    const again = await state.startOver(wrong.handle, newTicket(), dayMs);
    if (again === null) throw new Error("Not started over");
    expect(await state.garbage(0, 10)).toEqual([]);
    await written(state, again.upload, 0, { status: "complete", sha256: digest });
    expect(await state.garbage(0, 10)).toHaveLength(1);
  });
}
