import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import type { AppendRequest } from "../../src/transfer/engine.ts";
import {
  bodyOf,
  contentOf,
  newFile,
  openBody,
  openTestStore,
  randomBytes,
  sha256,
} from "../support/engine.ts";
import { waitUntil } from "../support/wait-until.ts";

const me = "local";

function filesIn(dataDir: string): string[] {
  const blobs = path.join(dataDir, "blobs");
  return readdirSync(blobs).flatMap((shard) => readdirSync(path.join(blobs, shard)));
}

function rowsIn(dataDir: string, table: "small_file" | "garbage"): number {
  const db = new DatabaseSync(path.join(dataDir, "state.sqlite"), { readOnly: true });
  try {
    return Number(db.prepare(`select count(*) as n from ${table}`).get()?.n);
  } finally {
    db.close();
  }
}

function expireAll(dataDir: string): void {
  const db = new DatabaseSync(path.join(dataDir, "state.sqlite"), { timeout: 5000 });
  db.exec("update upload set expires_at = 1");
  db.close();
}

function isLeased(dataDir: string): boolean {
  const db = new DatabaseSync(path.join(dataDir, "state.sqlite"), { readOnly: true });
  try {
    return db.prepare("select lease_active from upload").get()?.lease_active === 1;
  } finally {
    db.close();
  }
}

const whole = (bytes: Uint8Array): AppendRequest => ({ offset: 0, body: bodyOf(bytes) });

describe("a whole file of up to 16 KiB in one body", () => {
  it.each([1, 1000, 16_384])(
    "(%i bytes) is kept with its record, makes no file, and is read like any other",
    async (size) => {
      const { transfers, dataDir } = await openTestStore();
      const bytes = randomBytes(size);
      const { transfer, ticket } = await transfers.create(me, newFile({ sizeBytes: size }));
      const appended = await transfers.append(ticket, whole(bytes));
      expect(appended.transfer).toMatchObject({ status: "complete", offset: size, sha256: sha256(bytes) });
      expect(filesIn(dataDir)).toEqual([]);
      expect(rowsIn(dataDir, "small_file")).toBe(1);
      const file = await transfers.openOwn(me, transfer.handle);
      expect((await contentOf(file.stream(0, size))).equals(bytes)).toBe(true);
      expect((await contentOf(file.stream(size - 1, size))).equals(bytes.subarray(size - 1))).toBe(true);
      expect(await transfers.verify(() => {})).toEqual({ checkedFiles: 1, checkedBytes: size, faults: 0 });
    },
  );

  it("of one byte more is a file", async () => {
    const { transfers, dataDir } = await openTestStore();
    const { ticket } = await transfers.create(me, newFile({ sizeBytes: 16_385 }));
    await transfers.append(ticket, whole(randomBytes(16_385)));
    expect(filesIn(dataDir)).toHaveLength(1);
    expect(rowsIn(dataDir, "small_file")).toBe(0);
  });

  it("is created and stored in one call, with a declared digest right or wrong", async () => {
    const { transfers, dataDir } = await openTestStore();
    const bytes = randomBytes(500);
    const right = await transfers.createWith(
      me,
      newFile({ sizeBytes: 500, sha256: sha256(bytes) }),
      whole(bytes),
    );
    expect(right).toMatchObject({ created: true, transfer: { status: "complete", sha256: sha256(bytes) } });
    const wrong = newFile({ sizeBytes: 500, sha256: sha256(randomBytes(1)) });
    await expect(transfers.createWith(me, wrong, whole(bytes))).rejects.toMatchObject({
      code: "checksum_mismatch",
      status: 422,
    });
    const { transfers: listed } = await transfers.list(me, { status: "mismatch", limit: 5, cursor: null });
    expect(listed).toHaveLength(1);
    const again = await transfers.resume(me, listed[0]?.handle ?? "");
    await expect(transfers.append(again.ticket, whole(bytes))).rejects.toMatchObject({
      code: "checksum_mismatch",
    });
    expect(filesIn(dataDir)).toEqual([]);
  });

  it("that breaks off together with its creation creates nothing", async () => {
    const { transfers } = await openTestStore();
    const body = openBody(500);
    const creating = expect(
      transfers.createWith(me, newFile({ sizeBytes: 500 }), { offset: 0, body }),
    ).rejects.toMatchObject({ code: "size_mismatch" });
    body.feed(randomBytes(100));
    await waitUntil(() => body.stream.readableLength === 0 && body.stream.readableFlowing === true);
    body.stream.destroy();
    await creating;
    expect((await transfers.list(me, { status: null, limit: 5, cursor: null })).transfers).toEqual([]);
  });

  it("that breaks off keeps what came, and goes on from there", async () => {
    const { transfers } = await openTestStore();
    const bytes = randomBytes(500);
    const { transfer, ticket } = await transfers.create(me, newFile({ sizeBytes: 500 }));
    const body = openBody(500);
    const broken = expect(transfers.append(ticket, { offset: 0, body })).rejects.toMatchObject({
      code: "size_mismatch",
      options: { cursor: 100 },
    });
    body.feed(bytes.subarray(0, 100));
    await waitUntil(() => body.stream.readableLength === 0 && body.stream.readableFlowing === true);
    body.stream.destroy();
    await broken;
    expect((await transfers.status(me, transfer.handle)).offset).toBe(100);
    const end = await transfers.append(ticket, { offset: 100, body: bodyOf(bytes.subarray(100)) });
    expect(end.transfer).toMatchObject({ status: "complete", sha256: sha256(bytes) });
  });

  it("with a wrong checksum stores nothing, and the right body goes on at 0", async () => {
    const { transfers, dataDir } = await openTestStore();
    const bytes = randomBytes(500);
    const { transfer, ticket } = await transfers.create(me, newFile({ sizeBytes: 500 }));
    const checksums = [{ algorithm: "sha256", hex: sha256(bytes), failStatus: 460 }] as const;
    await expect(transfers.append(ticket, { ...whole(randomBytes(500)), checksums })).rejects.toMatchObject({
      code: "checksum_mismatch",
      status: 460,
    });
    expect((await transfers.status(me, transfer.handle)).offset).toBe(0);
    expect(rowsIn(dataDir, "small_file")).toBe(0);
    expect((await transfers.append(ticket, { ...whole(bytes), checksums })).transfer.status).toBe("complete");
  });

  it("of two that come at once stores one, and tells the other the truth", async () => {
    const store = await openTestStore();
    const other = await openTestStore({ dataDir: store.dataDir });
    for (let round = 0; round < 20; round += 1) {
      const { transfer, ticket } = await store.transfers.create(me, newFile({ sizeBytes: 100 }));
      const bodies = [randomBytes(100), randomBytes(100)];
      const results = await Promise.allSettled([
        store.transfers.append(ticket, whole(bodies[0] ?? Buffer.alloc(0))),
        other.transfers.append(ticket, whole(bodies[1] ?? Buffer.alloc(0))),
      ]);
      const winners = results.flatMap((result, index) => (result.status === "fulfilled" ? [index] : []));
      expect(winners).toHaveLength(1);
      const loser = results.find((result) => result.status === "rejected");
      expect(["offset_mismatch", "upload_locked", "not_active"]).toContain(loser?.reason.code);
      const file = await store.transfers.openOwn(me, transfer.handle);
      expect(sha256(await contentOf(file.stream(0, 100)))).toBe(
        sha256(bodies[winners[0] ?? 0] ?? Buffer.alloc(0)),
      );
    }
  });

  it("that does not come at once is a write like any other: others see its lease, and it does not expire", async () => {
    const store = await openTestStore();
    const other = await openTestStore({ dataDir: store.dataDir });
    const bytes = randomBytes(500);
    const { transfer, ticket } = await store.transfers.create(me, newFile({ sizeBytes: 500 }));
    const body = openBody(500);
    const first = store.transfers.append(ticket, { offset: 0, body });
    let sent = 0;
    const feeding = setInterval(() => {
      if (sent >= 400) return;
      body.feed(bytes.subarray(sent, sent + 1));
      sent += 1;
    }, 20);
    try {
      await waitUntil(() => isLeased(store.dataDir));
      await expect(other.transfers.append(ticket, whole(bytes))).rejects.toMatchObject({
        code: "upload_locked",
      });
      await expect(other.transfers.remove(ticket)).rejects.toMatchObject({ code: "upload_locked" });
      await expect(store.transfers.remove(ticket)).rejects.toMatchObject({ code: "upload_locked" });
      expireAll(store.dataDir);
      expect((await other.transfers.sweep()).markedExpired).toBe(0);
      expect((await other.transfers.status(me, transfer.handle)).status).toBe("receiving");
    } finally {
      clearInterval(feeding);
    }
    body.feed(bytes.subarray(sent));
    body.stream.push(null);
    expect((await first).transfer).toMatchObject({ status: "complete", sha256: sha256(bytes) });
  });

  it("that stalls is ended by a HEAD through another process, which tells what came and is believed next", async () => {
    const store = await openTestStore();
    const other = await openTestStore({ dataDir: store.dataDir });
    const bytes = randomBytes(500);
    const { ticket } = await store.transfers.create(me, newFile({ sizeBytes: 500 }));
    const body = openBody(500);
    const ended = expect(store.transfers.append(ticket, { offset: 0, body })).rejects.toMatchObject({
      code: "upload_locked",
    });
    body.feed(bytes.subarray(0, 123));
    await waitUntil(async () => (await other.transfers.head(ticket)).offset === 123);
    await ended;
    const end = await other.transfers.append(ticket, { offset: 123, body: bodyOf(bytes.subarray(123)) });
    expect(end.transfer).toMatchObject({ status: "complete", sha256: sha256(bytes) });
  });

  it("gets a path when one is asked for, and the row goes an hour after the last reference", async () => {
    const { transfers, dataDir } = await openTestStore();
    const bytes = randomBytes(777);
    const { transfer } = await transfers.createWith(me, newFile({ sizeBytes: 777 }), whole(bytes));
    const file = await transfers.openOwn(me, transfer.handle);
    const found = await file.path();
    expect(readFileSync(found ?? "").equals(bytes)).toBe(true);
    expect(rowsIn(dataDir, "small_file")).toBe(1);
    await transfers.removeOwn(me, transfer.handle);
    await transfers.sweep();
    expect(rowsIn(dataDir, "small_file")).toBe(1);
    const db = new DatabaseSync(path.join(dataDir, "state.sqlite"));
    db.exec("update garbage set since = since - 3600001");
    db.close();
    await transfers.sweep();
    expect([rowsIn(dataDir, "small_file"), rowsIn(dataDir, "garbage"), filesIn(dataDir).length]).toEqual([
      0, 0, 0,
    ]);
  });
});
