import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { bodyOf, contentOf, newFile, openTestStore, randomBytes, sha256 } from "../support/engine.ts";
import { openBelow, tellsOpenFiles } from "../support/open-files.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitUntil } from "../support/wait-until.ts";

const me = "local";
const isBlob = (file: string): boolean => path.basename(file).includes(".");
const words = {
  filename: "whole.bin",
  contentType: null,
  metadata: null,
  sha256: null,
  uploadConcat: "final;…",
};

describe("concatenation", () => {
  it("goes on over a restart in the middle of the parts, and the final says the same after another", async () => {
    const dataDir = await tempDir();
    const bytes = randomBytes(3_000_000);
    const before = await openTestStore({ dataDir });
    const first = await before.transfers.create(me, newFile({ sizeBytes: 1_000_000, concat: "partial" }));
    await before.transfers.append(first.ticket, { offset: 0, body: bodyOf(bytes.subarray(0, 1_000_000)) });
    const second = await before.transfers.create(me, newFile({ sizeBytes: 2_000_000, concat: "partial" }));
    await before.transfers.append(second.ticket, {
      offset: 0,
      body: bodyOf(bytes.subarray(1_000_000, 1_700_000)),
    });
    await before.close();

    const after = await openTestStore({ dataDir });
    expect((await after.transfers.head(second.ticket)).offset).toBe(700_000);
    await after.transfers.append(second.ticket, { offset: 700_000, body: bodyOf(bytes.subarray(1_700_000)) });
    const tickets = [first.ticket, second.ticket];
    const made = await after.transfers.concatenate(me, { ...words, tickets, sha256: sha256(bytes) });
    expect(made).toMatchObject({ created: true, transfer: { status: "complete", sha256: sha256(bytes) } });
    const { handle } = made.transfer;
    await after.close();

    const last = await openTestStore({ dataDir });
    const again = await last.transfers.concatenate(me, { ...words, tickets, sha256: sha256(bytes) });
    expect(again).toMatchObject({
      created: false,
      transfer: { handle, status: "complete", uploadConcat: "final;…" },
    });
    const file = await last.transfers.openOwn(me, handle);
    expect((await contentOf(file.stream(0, 3_000_000))).equals(bytes)).toBe(true);
  });

  it.skipIf(!tellsOpenFiles)(
    "keeps a part open for its next bytes, and none that has all of them",
    async () => {
      const dataDir = await tempDir();
      const { transfers } = await openTestStore({ dataDir });
      const bytes = randomBytes(200_000);
      const { ticket } = await transfers.create(me, newFile({ sizeBytes: bytes.length, concat: "partial" }));
      await transfers.append(ticket, { offset: 0, body: bodyOf(bytes.subarray(0, 100_000)) });
      const blobs = path.join(dataDir, "blobs");
      // The folders that were synced stay open as well; files have a name of two parts.
      expect(openBelow(blobs, isBlob)).toBe(1);
      await transfers.append(ticket, { offset: 100_000, body: bodyOf(bytes.subarray(100_000)) });
      await waitUntil(() => openBelow(blobs, isBlob) === 0, 3_000);
    },
  );

  it("whose process died before the digest was known is verified by the next start", async () => {
    const dataDir = await tempDir();
    const bytes = randomBytes(500_000);
    const before = await openTestStore({ dataDir });
    const part = await before.transfers.create(me, newFile({ sizeBytes: bytes.length, concat: "partial" }));
    await before.transfers.append(part.ticket, { offset: 0, body: bodyOf(bytes) });
    // Closing stops verifications that have not begun; the record stays as a crash would leave it.
    const making = before.transfers.concatenate(me, { ...words, tickets: [part.ticket] });
    await Promise.allSettled([making, before.close()]);

    const after = await openTestStore({ dataDir });
    const made = await after.transfers.concatenate(me, { ...words, tickets: [part.ticket] });
    const { handle } = made.transfer;
    await after.transfers.status(me, handle, { waitMs: 10_000 });
    expect(await after.transfers.status(me, handle)).toMatchObject({
      status: "complete",
      sha256: sha256(bytes),
    });
  });

  it("counts parts toward the quota until they are one file", async () => {
    const { transfers } = await openTestStore({ quota: { maxBytes: 1000, maxFiles: 2 } });
    const tickets: string[] = [];
    for (const size of [400, 600]) {
      const { ticket } = await transfers.create(me, newFile({ sizeBytes: size, concat: "partial" }));
      await transfers.append(ticket, { offset: 0, body: bodyOf(randomBytes(size)) });
      tickets.push(ticket);
    }
    await expect(transfers.create(me, newFile({ sizeBytes: 0 }))).rejects.toMatchObject({
      code: "quota_exceeded",
    });
    await transfers.concatenate(me, { ...words, tickets });
    await transfers.create(me, newFile({ sizeBytes: 0 }));
    await expect(transfers.create(me, newFile({ sizeBytes: 1 }))).rejects.toMatchObject({
      code: "quota_exceeded",
    });
  });

  it("of an expired part is refused as expired, with the part's handle", async () => {
    const dataDir = await tempDir();
    const { transfers } = await openTestStore({ dataDir });
    const { ticket, transfer } = await transfers.create(me, newFile({ sizeBytes: 1, concat: "partial" }));
    await transfers.append(ticket, { offset: 0, body: bodyOf(Buffer.from("a")) });
    const database = new DatabaseSync(path.join(dataDir, "state.sqlite"));
    database.exec("UPDATE upload SET expires_at = 1");
    database.close();
    await expect(transfers.concatenate(me, { ...words, tickets: [ticket] })).rejects.toMatchObject({
      code: "transfer_expired",
      options: { about: { handle: transfer.handle, status: "expired" } },
    });
  });
});
