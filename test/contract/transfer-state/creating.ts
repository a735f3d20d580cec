import { expect, it } from "vitest";
import {
  begun,
  committed,
  created,
  dayMs,
  finished,
  found,
  hourMs,
  newBlob,
  newTicket,
  newUpload,
  noQuota,
  type StateUnderTest,
  written,
} from "./fixture.ts";

const sameCall = (tool = "upload_create", key = "k1", argumentsHash = "a".repeat(64)) => ({
  tool,
  key,
  argumentsHash,
});

export function creating(under: () => StateUnderTest): void {
  it("a created upload is found by its ticket and by its handle, with all that was given", async () => {
    const { state } = under();
    const input = newUpload({ declaredSha256: "c".repeat(64), concat: "final" });
    const outcome = await state.createUpload(input);
    expect(outcome).toMatchObject({ kind: "created", segment: null });
    if (outcome.kind !== "created") return;
    const { upload, now } = outcome;
    expect(upload).toEqual({
      handle: input.handle,
      principal: "ada",
      status: "receiving",
      filename: "notes.txt",
      contentType: "text/plain",
      metadata: input.metadata,
      sizeBytes: 1_000,
      offset: 0,
      declaredSha256: "c".repeat(64),
      sha256: null,
      generation: upload.generation,
      fence: 0,
      leaseOwner: null,
      leaseRequested: false,
      leaseActive: false,
      createdAt: now,
      updatedAt: now,
      completedAt: null,
      expiresAt: now + dayMs,
      bytesPerSecond: null,
      concat: "final",
      uploadConcat: null,
    });
    expect((await state.findUpload(input.handle))?.upload).toEqual(upload);
    const view = await state.findByTicket(input.ticket.hash);
    expect(view?.upload).toEqual(upload);
    expect(view?.ticket).toEqual({
      hash: input.ticket.hash,
      handle: input.handle,
      kind: "upload",
      generation: upload.generation,
      createdAt: now,
      expiresAt: null,
    });
    expect(view?.now).toBeGreaterThanOrEqual(now);
  });

  it("an upload without a name, type, metadata, size or end keeps them null", async () => {
    const { state } = under();
    const bare = { filename: null, contentType: null, metadata: null, sizeBytes: null, ttlMs: null };
    const upload = await created(state, bare);
    expect(await found(state, upload.handle)).toMatchObject({
      filename: null,
      contentType: null,
      metadata: null,
      sizeBytes: null,
      expiresAt: null,
    });
  });

  it("names with quotes, line breaks, emoji and the largest size come back as they were", async () => {
    const { state } = under();
    const odd = `'; drop table "upload"; -- \n\t🦆 ${"ü".repeat(500)}`;
    const upload = await created(state, { filename: odd, metadata: odd, sizeBytes: Number.MAX_SAFE_INTEGER });
    expect(await found(state, upload.handle)).toMatchObject({
      filename: odd,
      metadata: odd,
      sizeBytes: Number.MAX_SAFE_INTEGER,
    });
  });

  it("what is not known is null", async () => {
    const { state } = under();
    expect(await state.findUpload("fh_none")).toBeNull();
    expect(await state.findByTicket("0".repeat(64))).toBeNull();
    expect(await state.segments("fh_none")).toEqual([]);
  });

  it("a handle that exists answers taken and nothing of either is kept or changed", async () => {
    const { state } = under();
    const upload = await created(state);
    const again = newUpload({
      handle: upload.handle,
      filename: "other.txt",
      sizeBytes: 5,
      idempotency: sameCall(),
    });
    expect(await state.createUpload(again)).toEqual({ kind: "taken" });
    expect(await found(state, upload.handle)).toEqual(upload);
    expect(await state.findByTicket(again.ticket.hash)).toBeNull();
    expect(await state.usage("ada")).toEqual({ bytes: 1_000, files: 1 });
    expect(await state.createUpload(newUpload({ idempotency: sameCall() }))).toMatchObject({
      kind: "created",
    });
  });

  it("creation with a begin holds the lease at fence 1 with an empty segment 0, and a commit follows at once", async () => {
    const { state } = under();
    const blob = newBlob();
    const outcome = await state.createUpload(newUpload({ begin: { owner: "p_one", blob } }));
    if (outcome.kind !== "created" || outcome.segment === null) throw new Error("Not begun");
    const { upload, segment } = outcome;
    expect(upload).toMatchObject({ fence: 1, leaseOwner: "p_one", leaseActive: true });
    expect(segment).toEqual({
      handle: upload.handle,
      generation: upload.generation,
      seq: 0,
      start: 0,
      length: 0,
      blob,
      blobOffset: 0,
      fence: 1,
    });
    expect(await state.segments(upload.handle)).toEqual([]);
    await committed(state, { upload, segment }, 400);
    expect(await state.segments(upload.handle)).toEqual([{ ...segment, length: 400 }]);
  });

  it("the same idempotency key and arguments give the same record and a further ticket, and change nothing else", async () => {
    const { state } = under();
    const first = newUpload({ idempotency: sameCall() });
    await state.createUpload(first);
    const before = await found(state, first.handle);
    const second = newUpload({ idempotency: sameCall() });
    const outcome = await state.createUpload(second);
    expect(outcome).toMatchObject({ kind: "existing", upload: before });
    expect(await found(state, first.handle)).toEqual(before);
    expect(await state.findUpload(second.handle)).toBeNull();
    expect((await state.findByTicket(first.ticket.hash))?.upload.handle).toBe(first.handle);
    expect((await state.findByTicket(second.ticket.hash))?.upload.handle).toBe(first.handle);
    expect(await state.usage("ada")).toEqual({ bytes: 1_000, files: 1 });
  });

  it("an idempotency key finds a record that is full, over quota or complete by now", async () => {
    const { state } = under();
    const upload = await finished(state, "complete", 1_000, { idempotency: sameCall() });
    const quota = { maxBytes: 1_000, maxFiles: 1 };
    expect(await state.createUpload(newUpload({ idempotency: sameCall(), quota }))).toMatchObject({
      kind: "existing",
      upload: { handle: upload.handle, status: "complete" },
    });
  });

  it("the same idempotency key with other arguments is a conflict and leaves nothing", async () => {
    const { state } = under();
    await created(state, { idempotency: sameCall() });
    const other = newUpload({ idempotency: sameCall("upload_create", "k1", "b".repeat(64)) });
    expect(await state.createUpload(other)).toEqual({ kind: "conflict" });
    expect(await state.findUpload(other.handle)).toBeNull();
    expect(await state.findByTicket(other.ticket.hash)).toBeNull();
  });

  it("an idempotency key belongs to principal and tool", async () => {
    const { state } = under();
    await created(state, { idempotency: sameCall() });
    await created(state, { idempotency: sameCall("file_import") });
    await created(state, { idempotency: sameCall(), principal: "bob" });
    expect(await state.usage("ada")).toMatchObject({ files: 2 });
    expect(await state.usage("bob")).toMatchObject({ files: 1 });
  });

  it("an idempotency key ends when its record is removed", async () => {
    const { state } = under();
    const upload = await created(state, { idempotency: sameCall() });
    await state.removeUpload(upload.handle, null);
    const again = await created(state, { idempotency: sameCall("upload_create", "k1", "b".repeat(64)) });
    expect(again.handle).not.toBe(upload.handle);
  });

  it("an idempotency key ends when its record has expired, and belongs to the next record then", async () => {
    const { state, passTime } = under();
    const upload = await created(state, { idempotency: sameCall(), ttlMs: hourMs });
    await passTime(hourMs + 1_000);
    const next = await created(state, { idempotency: sameCall() });
    expect(next.handle).not.toBe(upload.handle);
    await state.removeUpload(upload.handle, null);
    expect(await state.createUpload(newUpload({ idempotency: sameCall() }))).toMatchObject({
      kind: "existing",
      upload: { handle: next.handle },
    });
  });

  it("of many calls at once with one idempotency key, over two stores, one creates and the others find it", async () => {
    const { state, other } = under();
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        (index % 2 === 0 ? state : other).createUpload(newUpload({ idempotency: sameCall() })),
      ),
    );
    expect(outcomes.filter(({ kind }) => kind === "created")).toHaveLength(1);
    expect(outcomes.filter(({ kind }) => kind === "existing")).toHaveLength(11);
    expect(new Set(outcomes.map((outcome) => "upload" in outcome && outcome.upload.handle)).size).toBe(1);
  });

  it("a quota of files or bytes refuses what would pass it, says what is used, and keeps nothing", async () => {
    const { state } = under();
    await created(state, { sizeBytes: 600 });
    const files = newUpload({ quota: { maxBytes: null, maxFiles: 1 } });
    expect(await state.createUpload(files)).toEqual({ kind: "quota", limit: "files", used: 1 });
    const bytes = newUpload({ sizeBytes: 401, quota: { maxBytes: 1_000, maxFiles: null } });
    expect(await state.createUpload(bytes)).toEqual({ kind: "quota", limit: "bytes", used: 600 });
    expect(await state.findUpload(files.handle)).toBeNull();
    expect(await state.usage("ada")).toEqual({ bytes: 600, files: 1 });
    expect(await state.createUpload({ ...bytes, sizeBytes: 400 })).toMatchObject({ kind: "created" });
    expect(
      await state.createUpload(newUpload({ principal: "bob", quota: { maxBytes: 1_000, maxFiles: 1 } })),
    ).toMatchObject({
      kind: "created",
    });
  });

  it("a quota is never passed by calls that come at once, over two stores", async () => {
    const { state, other } = under();
    const quota = { maxBytes: null, maxFiles: 5 };
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        (index % 2 === 0 ? state : other).createUpload(newUpload({ quota })),
      ),
    );
    expect(outcomes.filter(({ kind }) => kind === "created")).toHaveLength(5);
    expect(await state.usage("ada")).toEqual({ bytes: 5_000, files: 5 });
  });

  it("an upload of unknown size counts what has come, and a known one its size from the start", async () => {
    const { state, recount } = under();
    const deferred = await created(state, { sizeBytes: null });
    expect(await state.usage("ada")).toEqual({ bytes: 0, files: 1 });
    await written(state, deferred, 70);
    await created(state, { sizeBytes: 30 });
    expect(await state.usage("ada")).toEqual({ bytes: 100, files: 2 });
    const lease = await begun(state, await found(state, deferred.handle), { declareSize: 500 });
    expect(await state.usage("ada")).toEqual({ bytes: 530, files: 2 });
    await committed(state, lease, 430, { status: "complete", sha256: "d".repeat(64) });
    expect(await state.usage("ada")).toEqual({ bytes: 530, files: 2 });
    expect(await recount("ada")).toEqual({ bytes: 530, files: 2 });
    expect(await state.usage("nobody")).toEqual({ bytes: 0, files: 0 });
  });

  it("sizes that add up past the exact integers are still counted and refused", async () => {
    const { state } = under();
    const huge = Number.MAX_SAFE_INTEGER;
    for (let index = 0; index < 3; index += 1) await created(state, { sizeBytes: huge });
    expect((await state.usage("ada")).bytes).toBeCloseTo(3 * huge, -1);
    const quota = { maxBytes: huge, maxFiles: null };
    expect(await state.createUpload(newUpload({ sizeBytes: 1, quota }))).toMatchObject({
      kind: "quota",
      limit: "bytes",
    });
    expect(await state.createUpload(newUpload({ sizeBytes: 0, quota: noQuota }))).toMatchObject({
      kind: "created",
    });
  });

  it("a method that fails half-way has changed nothing", async () => {
    const { state } = under();
    const ticket = newTicket();
    const first = await created(state, { ticket });
    // The ticket's hash is taken, which is found out when the record is in already.
    const second = newUpload({ ticket, idempotency: sameCall(), begin: { owner: "p_one", blob: newBlob() } });
    const third = newUpload();
    const [failed, fine] = await Promise.allSettled([state.createUpload(second), state.createUpload(third)]);
    expect(failed.status).toBe("rejected");
    expect(fine).toMatchObject({ status: "fulfilled", value: { kind: "created" } });
    expect(await state.findUpload(second.handle)).toBeNull();
    expect((await state.findByTicket(ticket.hash))?.upload.handle).toBe(first.handle);
    expect(await state.usage("ada")).toEqual({ bytes: 2_000, files: 2 });
    expect(await state.createUpload(newUpload({ idempotency: sameCall() }))).toMatchObject({
      kind: "created",
    });
  });
}
