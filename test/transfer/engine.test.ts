import { readdirSync, statSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { openFileBlobs } from "../../src/store/blobs/file-blobs.ts";
import type { TransferEngine } from "../../src/transfer/engine.ts";
import { compareWithStored } from "../../src/transfer/stored-bytes.ts";
import {
  bodyOf,
  chunkedBodyOf,
  contentOf,
  newFile,
  openBody,
  openTestStore,
  randomBytes,
  sha256,
} from "../support/engine.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitUntil } from "../support/wait-until.ts";

const me = "local";

async function read(engine: TransferEngine, handle: string): Promise<Buffer> {
  const file = await engine.openOwn(me, handle);
  return contentOf(file.stream(0, file.transfer.sizeBytes));
}

describe("an upload", () => {
  it.each([0, 1, 1024, 262_144, 262_145, 1 << 20, 3 * (1 << 20) + 7])(
    "of %i bytes in one body is complete with its sha256 when the append returns",
    async (size) => {
      const { transfers } = await openTestStore();
      const bytes = randomBytes(size);
      const { transfer, ticket } = await transfers.create(me, newFile({ sizeBytes: size }));
      if (size > 0) await transfers.append(ticket, { offset: 0, body: bodyOf(bytes) });
      const status = await transfers.status(me, transfer.handle);
      expect(status).toMatchObject({
        status: "complete",
        offset: size,
        sizeBytes: size,
        sha256: sha256(bytes),
      });
      expect((await read(transfers, transfer.handle)).equals(bytes)).toBe(true);
    },
  );

  it("in many bodies of any sizes keeps the order, extends one segment, and ends with the digest of the whole", async () => {
    const { transfers } = await openTestStore();
    const bytes = randomBytes(700_000);
    const { transfer, ticket } = await transfers.create(me, newFile({ sizeBytes: bytes.length }));
    let offset = 0;
    for (const size of [1, 2, 65_536, 100_000, 4096, 0, 300_000, 700_000]) {
      const piece = bytes.subarray(offset, offset + size);
      const appended = await transfers.append(ticket, { offset, body: bodyOf(piece, 1000) });
      offset += piece.length;
      expect(appended.transfer.offset).toBe(offset);
    }
    expect(await transfers.status(me, transfer.handle)).toMatchObject({
      status: "complete",
      sha256: sha256(bytes),
    });
    expect((await read(transfers, transfer.handle)).equals(bytes)).toBe(true);
  });

  it("created with its first bytes is one call, and a second body goes on", async () => {
    const { transfers } = await openTestStore();
    const bytes = randomBytes(10_000);
    const created = await transfers.createWith(me, newFile({ sizeBytes: 10_000 }), {
      offset: 0,
      body: bodyOf(bytes.subarray(0, 4000)),
    });
    expect(created).toMatchObject({
      created: true,
      receivedBytes: 4000,
      transfer: { offset: 4000, status: "receiving" },
    });
    const end = await transfers.append(created.ticket, { offset: 4000, body: bodyOf(bytes.subarray(4000)) });
    expect(end.transfer).toMatchObject({ status: "complete", sha256: sha256(bytes) });
  });

  it("of deferred size is complete when a final body ends", async () => {
    const { transfers } = await openTestStore();
    const bytes = randomBytes(9000);
    const { ticket } = await transfers.create(me, newFile());
    await transfers.append(ticket, { offset: 0, body: chunkedBodyOf(bytes.subarray(0, 5000)) });
    const end = await transfers.append(ticket, {
      offset: 5000,
      body: chunkedBodyOf(bytes.subarray(5000)),
      final: true,
    });
    expect(end.transfer).toMatchObject({ status: "complete", sizeBytes: 9000, sha256: sha256(bytes) });
  });

  it("of deferred size takes its size with a body, and only one that fits", async () => {
    const { transfers } = await openTestStore();
    const { ticket } = await transfers.create(me, newFile());
    await transfers.append(ticket, { offset: 0, body: bodyOf(randomBytes(100)) });
    await expect(
      transfers.append(ticket, { offset: 100, body: bodyOf(randomBytes(0)), declareSizeBytes: 99 }),
    ).rejects.toMatchObject({ code: "size_mismatch" });
    const declared = await transfers.append(ticket, {
      offset: 100,
      body: bodyOf(randomBytes(0)),
      declareSizeBytes: 150,
    });
    expect(declared.transfer).toMatchObject({ sizeBytes: 150, offset: 100, status: "receiving" });
    await expect(
      transfers.append(ticket, { offset: 100, body: bodyOf(randomBytes(10)), declareSizeBytes: 151 }),
    ).rejects.toMatchObject({ code: "size_mismatch" });
    const end = await transfers.append(ticket, { offset: 100, body: bodyOf(randomBytes(50)) });
    expect(end.transfer.status).toBe("complete");
  });

  it("with another offset than the acknowledged one is refused with the true one, and nothing is stored", async () => {
    const { transfers } = await openTestStore();
    const { transfer, ticket } = await transfers.create(me, newFile({ sizeBytes: 1000 }));
    await transfers.append(ticket, { offset: 0, body: bodyOf(randomBytes(400)) });
    for (const offset of [0, 399, 401, 1000]) {
      await expect(transfers.append(ticket, { offset, body: bodyOf(randomBytes(0)) })).rejects.toMatchObject({
        code: "offset_mismatch",
        options: { cursor: 400 },
      });
    }
    expect(await transfers.status(me, transfer.handle)).toMatchObject({ offset: 400, status: "receiving" });
  });

  it("with a body that is announced longer than what is missing is refused before a byte is read", async () => {
    const { transfers } = await openTestStore();
    const { transfer, ticket } = await transfers.create(me, newFile({ sizeBytes: 1000 }));
    const body = openBody(1001);
    await expect(transfers.append(ticket, { offset: 0, body })).rejects.toMatchObject({
      code: "size_mismatch",
      options: { cursor: 0 },
    });
    expect(body.stream.readableFlowing).not.toBe(true);
    expect((await transfers.status(me, transfer.handle)).offset).toBe(0);
  });

  it("with an unannounced body that runs over keeps nothing of it, and takes the right bytes afterwards", async () => {
    const { transfers } = await openTestStore();
    const bytes = randomBytes(1000);
    const { transfer, ticket } = await transfers.create(me, newFile({ sizeBytes: 1000 }));
    await expect(
      transfers.append(ticket, { offset: 0, body: chunkedBodyOf(randomBytes(1001), 100) }),
    ).rejects.toMatchObject({ code: "size_mismatch", options: { cursor: 0 } });
    expect(await transfers.status(me, transfer.handle)).toMatchObject({ status: "receiving", offset: 0 });
    const end = await transfers.append(ticket, { offset: 0, body: chunkedBodyOf(bytes, 100) });
    expect(end.transfer).toMatchObject({ status: "complete", sha256: sha256(bytes) });
    expect((await read(transfers, transfer.handle)).equals(bytes)).toBe(true);
  });

  it("whose sender breaks off keeps what came, and goes on from there", async () => {
    const { transfers } = await openTestStore();
    const bytes = randomBytes(500_000);
    const { transfer, ticket } = await transfers.create(me, newFile({ sizeBytes: bytes.length }));
    const body = openBody(bytes.length);
    const broken = expect(transfers.append(ticket, { offset: 0, body })).rejects.toMatchObject({
      options: { cursor: 200_000 },
    });
    body.feed(bytes.subarray(0, 200_000));
    await waitUntil(() => body.stream.readableLength === 0);
    body.stream.destroy();
    await broken;
    expect((await transfers.status(me, transfer.handle)).offset).toBe(200_000);
    const end = await transfers.append(ticket, { offset: 200_000, body: bodyOf(bytes.subarray(200_000)) });
    expect(end.transfer).toMatchObject({ status: "complete", sha256: sha256(bytes) });
  });

  it("with a checksum of another body stores nothing of it, and takes the right body at the same offset", async () => {
    const { transfers } = await openTestStore();
    const bytes = randomBytes(3_000_000);
    const { transfer, ticket } = await transfers.create(me, newFile({ sizeBytes: bytes.length }));
    const checksums = [{ algorithm: "sha256", hex: sha256(bytes), failStatus: 460 }] as const;
    await expect(
      transfers.append(ticket, { offset: 0, body: bodyOf(randomBytes(bytes.length)), checksums }),
    ).rejects.toMatchObject({ code: "checksum_mismatch", status: 460, options: { cursor: 0 } });
    const end = await transfers.append(ticket, { offset: 0, body: bodyOf(bytes), checksums });
    expect(end.transfer).toMatchObject({ status: "complete", sha256: sha256(bytes) });
    expect((await read(transfers, transfer.handle)).equals(bytes)).toBe(true);
  });

  it.each([0, 1000])(
    "with a checksum of another body leaves none of it on the disk behind %i bytes that count",
    async (before) => {
      const { transfers, dataDir } = await openTestStore();
      const bytes = randomBytes(3_000_000);
      const { ticket } = await transfers.create(me, newFile({ sizeBytes: bytes.length }));
      await transfers.append(ticket, { offset: 0, body: bodyOf(bytes.subarray(0, before)) });
      const rest = bytes.subarray(before);
      const checksums = [{ algorithm: "sha1", hex: "00".repeat(20), failStatus: 460 }] as const;
      for (let time = 0; time < 3; time += 1) {
        const wrong = transfers.append(ticket, { offset: before, body: bodyOf(rest), checksums });
        await expect(wrong).rejects.toMatchObject({ code: "checksum_mismatch" });
      }
      const files = readdirSync(path.join(dataDir, "blobs"), { recursive: true, withFileTypes: true });
      const sizes = files
        .filter((file) => file.isFile())
        .map(({ parentPath, name }) => statSync(path.join(parentPath, name)).size);
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(before);
      const end = await transfers.append(ticket, { offset: before, body: bodyOf(rest) });
      expect(end.transfer).toMatchObject({ status: "complete", sha256: sha256(bytes) });
    },
  );

  it("repeats its final answer to an empty body at the end, and takes no more bytes", async () => {
    const { transfers } = await openTestStore();
    const bytes = randomBytes(10);
    const { ticket } = await transfers.create(me, newFile({ sizeBytes: 10 }));
    await transfers.append(ticket, { offset: 0, body: bodyOf(bytes) });
    expect(
      (await transfers.append(ticket, { offset: 10, body: bodyOf(randomBytes(0)) })).transfer.sha256,
    ).toBe(sha256(bytes));
    expect(
      (await transfers.append(ticket, { offset: 10, body: chunkedBodyOf(randomBytes(0)) })).transfer.sha256,
    ).toBe(sha256(bytes));
    await expect(
      transfers.append(ticket, { offset: 10, body: chunkedBodyOf(randomBytes(1)) }),
    ).rejects.toMatchObject({ code: "size_mismatch" });
    await expect(transfers.append(ticket, { offset: 0, body: bodyOf(bytes) })).rejects.toMatchObject({
      code: "offset_mismatch",
    });
  });
});

describe("a declared sha256", () => {
  it("that is right makes the upload complete", async () => {
    const { transfers } = await openTestStore();
    const bytes = randomBytes(100_000);
    const { ticket } = await transfers.create(
      me,
      newFile({ sizeBytes: bytes.length, sha256: sha256(bytes) }),
    );
    expect((await transfers.append(ticket, { offset: 0, body: bodyOf(bytes) })).transfer.status).toBe(
      "complete",
    );
  });

  it.each([1000, 2_000_000])(
    "that is wrong (%i bytes) makes it a mismatch, and upload_resume starts the handle over until it is right",
    async (size) => {
      const { transfers } = await openTestStore();
      const bytes = randomBytes(size);
      const created = await transfers.create(me, newFile({ sizeBytes: size, sha256: sha256(bytes) }));
      const { handle } = created.transfer;
      const wrong = {
        code: "checksum_mismatch",
        status: 422,
        options: { repair: { tool: "upload_resume", arguments: { handle } } },
      };
      await expect(
        transfers.append(created.ticket, { offset: 0, body: bodyOf(randomBytes(size)) }),
      ).rejects.toMatchObject(wrong);
      expect(await transfers.status(me, handle)).toMatchObject({ status: "mismatch", offset: size });
      await expect(
        transfers.append(created.ticket, { offset: size, body: bodyOf(randomBytes(0)) }),
      ).rejects.toMatchObject(wrong);
      expect((await transfers.head(created.ticket)).status).toBe("mismatch");
      await expect(transfers.openOwn(me, handle)).rejects.toMatchObject({ code: "checksum_mismatch" });

      const again = await transfers.resume(me, handle);
      expect(again.transfer).toMatchObject({ handle, status: "receiving", offset: 0 });
      await expect(transfers.head(created.ticket)).rejects.toMatchObject({ code: "unknown_handle" });
      const end = await transfers.append(again.ticket, { offset: 0, body: bodyOf(bytes) });
      expect(end.transfer).toMatchObject({ status: "complete", sha256: sha256(bytes) });
      expect((await read(transfers, handle)).equals(bytes)).toBe(true);
    },
  );
});

describe("a resend from 0", () => {
  it("over a partly received upload compares what is here and appends the rest", async () => {
    const { transfers } = await openTestStore();
    const bytes = randomBytes(300_000);
    const { ticket } = await transfers.create(me, newFile({ sizeBytes: bytes.length }));
    await transfers.append(ticket, { offset: 0, body: bodyOf(bytes.subarray(0, 123_457)) });
    const end = await transfers.append(ticket, {
      offset: 0,
      resend: true,
      final: true,
      body: bodyOf(bytes, 1000),
    });
    expect(end.transfer).toMatchObject({ status: "complete", sha256: sha256(bytes) });
  });

  it("of another file is refused with 409 and changes nothing", async () => {
    const { transfers } = await openTestStore();
    const bytes = randomBytes(300_000);
    const { transfer, ticket } = await transfers.create(me, newFile({ sizeBytes: bytes.length }));
    await transfers.append(ticket, { offset: 0, body: bodyOf(bytes.subarray(0, 200_000)) });
    const other = Buffer.from(bytes);
    other[199_999] = (other[199_999] ?? 0) ^ 1;
    await expect(
      transfers.append(ticket, { offset: 0, resend: true, final: true, body: bodyOf(other, 1000) }),
    ).rejects.toMatchObject({ code: "checksum_mismatch", status: 409, options: { cursor: 200_000 } });
    expect((await transfers.status(me, transfer.handle)).offset).toBe(200_000);
    const end = await transfers.append(ticket, { offset: 200_000, body: bodyOf(bytes.subarray(200_000)) });
    expect(end.transfer.sha256).toBe(sha256(bytes));
  });

  it.each([1000, 300_000])(
    "(%i bytes) at the same time as another at another process ends right, or is told to come again",
    async (size) => {
      const one = await openTestStore();
      const other = await openTestStore({ dataDir: one.dataDir });
      for (let round = 0; round < 10; round += 1) {
        const bytes = randomBytes(size);
        const { ticket } = await one.transfers.create(me, newFile({ sizeBytes: size }));
        const put = ({ transfers }: typeof one) =>
          transfers.append(ticket, { offset: 0, resend: true, final: true, body: bodyOf(bytes) });
        const ends = await Promise.allSettled([put(one), put(other)]);
        expect(ends.some(({ status }) => status === "fulfilled")).toBe(true);
        for (const end of ends) {
          if (end.status === "rejected") expect(end.reason).toMatchObject({ code: "upload_locked" });
          else expect(end.value.transfer).toMatchObject({ status: "complete", sha256: sha256(bytes) });
        }
      }
    },
  );

  it("of a small file that another process has completed meanwhile is compared with it", async () => {
    const one = await openTestStore();
    const other = await openTestStore({ dataDir: one.dataDir });
    const bytes = randomBytes(1000);
    for (const sent of [bytes, randomBytes(1000)]) {
      const { ticket } = await one.transfers.create(me, newFile({ sizeBytes: 1000 }));
      const body = openBody(1000);
      let accepted = 0;
      const onAccepted = (): void => {
        accepted += 1;
      };
      const late = one.transfers.append(ticket, { offset: 0, resend: true, final: true, body, onAccepted });
      body.feed(sent.subarray(0, 500));
      await waitUntil(() => body.stream.readableFlowing === true && body.stream.readableLength === 0);
      await other.transfers.append(ticket, { offset: 0, body: bodyOf(bytes) });
      body.feed(sent.subarray(500));
      body.stream.push(null);
      if (sent === bytes) expect((await late).transfer).toMatchObject({ status: "complete", offset: 1000 });
      else await expect(late).rejects.toMatchObject({ code: "checksum_mismatch", status: 409 });
      expect(accepted).toBe(1);
    }
  });

  it("of a file whose record ends meanwhile is not called another file", async () => {
    const blobs = openFileBlobs({ dir: await tempDir(), fsync: "never" });
    const stored = compareWithStored(blobs, [], { offset: 3 });
    await expect(stored.next(Buffer.from("abc"))).rejects.toMatchObject({ code: "unknown_handle" });
    await blobs.close();
  });

  it("of the whole complete file repeats the answer, of another file is refused", async () => {
    const { transfers } = await openTestStore();
    const bytes = randomBytes(100_000);
    const { ticket } = await transfers.create(me, newFile({ sizeBytes: bytes.length }));
    await transfers.append(ticket, { offset: 0, body: bodyOf(bytes) });
    const again = await transfers.append(ticket, {
      offset: 0,
      resend: true,
      final: true,
      body: bodyOf(bytes),
    });
    expect(again.transfer).toMatchObject({ status: "complete", sha256: sha256(bytes) });
    await expect(
      transfers.append(ticket, { offset: 0, resend: true, final: true, body: bodyOf(randomBytes(100_000)) }),
    ).rejects.toMatchObject({ code: "checksum_mismatch", status: 409 });
  });
});

describe("two writers of one process on one upload", () => {
  it("have one winner: the second is told 423 while bytes come, and nothing of it is stored", async () => {
    const { transfers } = await openTestStore();
    const bytes = randomBytes(1000);
    const { ticket } = await transfers.create(me, newFile({ sizeBytes: 1000 }));
    const first = openBody(1000);
    const winner = transfers.append(ticket, { offset: 0, body: first });
    first.feed(bytes.subarray(0, 500));
    await waitUntil(() => first.stream.readableFlowing === true);
    await expect(
      transfers.append(ticket, { offset: 0, body: bodyOf(randomBytes(1000)) }),
    ).rejects.toMatchObject({ code: "upload_locked", options: { cursor: 0 } });
    first.feed(bytes.subarray(500));
    first.stream.push(null);
    expect((await winner).transfer).toMatchObject({ status: "complete", sha256: sha256(bytes) });
  });

  it("a HEAD ends the first, which commits what it has, and the offset it tells is accepted next", async () => {
    const { transfers } = await openTestStore();
    const bytes = randomBytes(1000);
    const { ticket } = await transfers.create(me, newFile({ sizeBytes: 1000 }));
    const first = openBody(1000);
    const ended = expect(transfers.append(ticket, { offset: 0, body: first })).rejects.toMatchObject({
      code: "upload_locked",
      options: { cursor: 500 },
    });
    first.feed(bytes.subarray(0, 500));
    await waitUntil(() => first.stream.readableFlowing === true && first.stream.readableLength === 0);
    expect((await transfers.head(ticket)).offset).toBe(500);
    await ended;
    expect(
      (await transfers.append(ticket, { offset: 500, body: bodyOf(bytes.subarray(500)) })).transfer.sha256,
    ).toBe(sha256(bytes));
  });

  it("a writer that brings no byte for two seconds is ended by the next", async () => {
    const { transfers } = await openTestStore();
    const bytes = randomBytes(1000);
    const { ticket } = await transfers.create(me, newFile({ sizeBytes: 1000 }));
    const first = openBody(1000);
    const ended = expect(transfers.append(ticket, { offset: 0, body: first })).rejects.toMatchObject({
      code: "upload_locked",
    });
    await waitUntil(async () => {
      try {
        return (
          (await transfers.append(ticket, { offset: 0, body: bodyOf(bytes) })).transfer.sha256 ===
          sha256(bytes)
        );
      } catch (error) {
        expect(error).toMatchObject({ code: "upload_locked" });
        return false;
      }
    });
    await ended;
  });

  it("looking at the status disturbs nobody", async () => {
    const { transfers } = await openTestStore();
    const { transfer, ticket } = await transfers.create(me, newFile({ sizeBytes: 10 }));
    const body = openBody(10);
    const done = transfers.append(ticket, { offset: 0, body });
    body.feed(Buffer.from("01234"));
    expect((await transfers.status(me, transfer.handle)).status).toBe("receiving");
    await transfers.head(ticket, { disturb: false });
    body.feed(Buffer.from("56789"));
    body.stream.push(null);
    expect((await done).transfer.status).toBe("complete");
  });
});

describe("ownership", () => {
  it("another principal's handle is as unknown as one that never was", async () => {
    const { transfers } = await openTestStore();
    const { transfer } = await transfers.create("alice", newFile({ sizeBytes: 1 }));
    const unknown = { code: "unknown_handle", message: "There is no such handle." };
    for (const handle of [transfer.handle, `fh_${"a".repeat(32)}`, "", "fh_", "../x", "\0"]) {
      await expect(transfers.status("bob", handle)).rejects.toMatchObject(unknown);
      await expect(transfers.resume("bob", handle)).rejects.toMatchObject(unknown);
      await expect(transfers.openOwn("bob", handle)).rejects.toMatchObject(unknown);
      await expect(transfers.removeOwn("bob", handle)).rejects.toMatchObject(unknown);
      await expect(transfers.mintDownload("bob", handle, null)).rejects.toMatchObject(unknown);
      await expect(
        transfers.appendTo("bob", handle, { offset: 0, body: bodyOf(randomBytes(1)) }),
      ).rejects.toMatchObject(unknown);
      await expect(transfers.prefixDigest("bob", handle, 10)).rejects.toMatchObject(unknown);
    }
    expect((await transfers.list("bob", { status: null, limit: 10, cursor: null })).transfers).toEqual([]);
    expect((await transfers.list("alice", { status: null, limit: 10, cursor: null })).transfers).toHaveLength(
      1,
    );
  });

  it("a ticket opens only what it is for", async () => {
    const { transfers } = await openTestStore();
    const { transfer, ticket } = await transfers.createWith(me, newFile({ sizeBytes: 3 }), {
      offset: 0,
      body: bodyOf(Buffer.from("abc")),
    });
    const download = await transfers.mintDownload(me, transfer.handle, null);
    await expect(transfers.openDownload(ticket)).rejects.toMatchObject({ code: "unknown_handle" });
    await expect(transfers.head(download.ticket)).rejects.toMatchObject({ code: "unknown_handle" });
    await expect(transfers.remove(download.ticket)).rejects.toMatchObject({ code: "unknown_handle" });
    const file = await transfers.openDownload(download.ticket);
    expect((await contentOf(file.stream(1, 3))).toString()).toBe("bc");
  });

  it("what is removed is unknown from then on, by handle and by every ticket", async () => {
    const { transfers } = await openTestStore();
    const { transfer, ticket } = await transfers.createWith(me, newFile({ sizeBytes: 3 }), {
      offset: 0,
      body: bodyOf(Buffer.from("abc")),
    });
    const download = await transfers.mintDownload(me, transfer.handle, null);
    await transfers.removeOwn(me, transfer.handle);
    await expect(transfers.status(me, transfer.handle)).rejects.toMatchObject({ code: "unknown_handle" });
    await expect(transfers.head(ticket)).rejects.toMatchObject({ code: "unknown_handle" });
    await expect(transfers.openDownload(download.ticket)).rejects.toMatchObject({ code: "unknown_handle" });
    expect((await transfers.list(me, { status: null, limit: 10, cursor: null })).transfers).toEqual([]);
  });
});

describe("limits", () => {
  it("a file above the limit is refused at creation, at declaration, and while it comes", async () => {
    const { transfers } = await openTestStore({ limits: { maxFileBytes: 1000 } });
    await expect(transfers.create(me, newFile({ sizeBytes: 1001 }))).rejects.toMatchObject({
      code: "file_too_large",
    });
    const { ticket } = await transfers.create(me, newFile());
    await expect(
      transfers.append(ticket, { offset: 0, body: bodyOf(randomBytes(0)), declareSizeBytes: 1001 }),
    ).rejects.toMatchObject({ code: "file_too_large" });
    await expect(
      transfers.append(ticket, { offset: 0, body: bodyOf(randomBytes(1001)) }),
    ).rejects.toMatchObject({ code: "file_too_large" });
    await expect(
      transfers.append(ticket, { offset: 0, body: chunkedBodyOf(randomBytes(1001), 100) }),
    ).rejects.toMatchObject({ code: "file_too_large" });
  });

  it("quotas of bytes and files hold, and deleting makes room", async () => {
    const { transfers } = await openTestStore({ quota: { maxBytes: 1000, maxFiles: 2 } });
    const first = await transfers.create(me, newFile({ sizeBytes: 900 }));
    await expect(transfers.create(me, newFile({ sizeBytes: 101 }))).rejects.toMatchObject({
      code: "quota_exceeded",
    });
    await transfers.create(me, newFile({ sizeBytes: 100 }));
    await expect(transfers.create(me, newFile({ sizeBytes: 0 }))).rejects.toMatchObject({
      code: "quota_exceeded",
    });
    await transfers.create("other", newFile({ sizeBytes: 1000 }));
    await transfers.removeOwn(me, first.transfer.handle);
    await transfers.create(me, newFile({ sizeBytes: 900 }));
  });

  it("below the reserve of free space creating and writing answer storage_full, reading goes on", async () => {
    const store = await openTestStore();
    const done = await store.transfers.createWith(me, newFile({ sizeBytes: 3 }), {
      offset: 0,
      body: bodyOf(Buffer.from("abc")),
    });
    const open = await store.transfers.create(me, newFile({ sizeBytes: 3 }));
    await store.close();
    const full = await openTestStore({ dataDir: store.dataDir, minFreeBytes: Number.MAX_SAFE_INTEGER });
    await expect(full.transfers.create(me, newFile({ sizeBytes: 1 }))).rejects.toMatchObject({
      code: "storage_full",
    });
    await expect(
      full.transfers.append(open.ticket, { offset: 0, body: bodyOf(Buffer.from("abc")) }),
    ).rejects.toMatchObject({ code: "storage_full", options: { cursor: 0 } });
    expect((await read(full.transfers, done.transfer.handle)).toString()).toBe("abc");
    expect((await full.transfers.head(open.ticket)).offset).toBe(0);
  });
});

describe("an idempotency key", () => {
  it("gives the same handle with a fresh ticket for the same arguments, and a conflict for others", async () => {
    const { transfers } = await openTestStore();
    const request = newFile({ sizeBytes: 3, idempotencyKey: "k" });
    const first = await transfers.create(me, request);
    const second = await transfers.create(me, request);
    expect(second).toMatchObject({ created: false, transfer: { handle: first.transfer.handle } });
    expect(second.ticket).not.toBe(first.ticket);
    await transfers.append(first.ticket, { offset: 0, body: bodyOf(Buffer.from("a")) });
    await transfers.append(second.ticket, { offset: 1, body: bodyOf(Buffer.from("bc")) });
    await expect(transfers.create(me, { ...request, sizeBytes: 4 })).rejects.toMatchObject({
      code: "idempotency_conflict",
    });
    expect((await transfers.create("other", request)).transfer.handle).not.toBe(first.transfer.handle);
    await transfers.removeOwn(me, first.transfer.handle);
    expect((await transfers.create(me, { ...request, sizeBytes: 4 })).created).toBe(true);
  });
});

describe("waiting", () => {
  it("returns when the status changes, not with every byte, and at the end of its time otherwise", async () => {
    const { transfers } = await openTestStore();
    const { transfer, ticket } = await transfers.create(me, newFile({ sizeBytes: 6 }));
    const waiting = transfers.status(me, transfer.handle, { waitMs: 30_000 });
    await transfers.append(ticket, { offset: 0, body: bodyOf(Buffer.from("abc")) });
    let early = false;
    void waiting.then(() => {
      early = true;
    });
    expect((await transfers.status(me, transfer.handle, { waitMs: 300 })).status).toBe("receiving");
    expect(early).toBe(false);
    await transfers.append(ticket, { offset: 3, body: bodyOf(Buffer.from("def")) });
    expect((await waiting).status).toBe("complete");
  });

  it("sees what another process on the same folder does", async () => {
    const store = await openTestStore();
    const other = await openTestStore({ dataDir: store.dataDir });
    const { transfer, ticket } = await store.transfers.create(me, newFile({ sizeBytes: 3 }));
    const waiting = other.transfers.status(me, transfer.handle, { waitMs: 30_000 });
    await store.transfers.append(ticket, { offset: 0, body: bodyOf(Buffer.from("abc")) });
    expect((await waiting).status).toBe("complete");
  });

  it("ends with the signal", async () => {
    const { transfers } = await openTestStore();
    const { transfer } = await transfers.create(me, newFile({ sizeBytes: 6 }));
    const abort = new AbortController();
    const waiting = transfers.status(me, transfer.handle, { waitMs: 30_000, signal: abort.signal });
    abort.abort();
    expect((await waiting).status).toBe("receiving");
  });
});

describe("a digest of the prefix", () => {
  it("is that of the acknowledged bytes, in this process and after a restart", async () => {
    const store = await openTestStore();
    const bytes = randomBytes(2_500_000);
    const { transfer, ticket } = await store.transfers.create(me, newFile({ sizeBytes: bytes.length }));
    await store.transfers.append(ticket, { offset: 0, body: bodyOf(bytes.subarray(0, 2_000_000)) });
    const expected = { bytes: 2_000_000, sha256: sha256(bytes.subarray(0, 2_000_000)) };
    expect(await store.transfers.prefixDigest(me, transfer.handle, 5000)).toEqual(expected);
    await store.close();
    const again = await openTestStore({ dataDir: store.dataDir });
    expect(await again.transfers.prefixDigest(me, transfer.handle, 5000)).toEqual(expected);
    const end = await again.transfers.append(ticket, {
      offset: 2_000_000,
      body: bodyOf(bytes.subarray(2_000_000)),
    });
    expect(await again.transfers.prefixDigest(me, transfer.handle, 5000)).toEqual({
      bytes: bytes.length,
      sha256: sha256(bytes),
    });
    expect((await again.transfers.status(me, end.transfer.handle, { waitMs: 5000 })).sha256).toBe(
      sha256(bytes),
    );
  });
});

describe("an upload of many segments", () => {
  it("is read as one file, and rewritten into one blob in the background", async () => {
    const dir = (await openTestStore()).dataDir;
    const bytes = randomBytes(20_000);
    let ticket = "";
    let handle = "";
    for (let piece = 0; piece < 20; piece += 1) {
      const store = await openTestStore({ dataDir: dir });
      if (piece === 0) {
        const created = await store.transfers.create(me, newFile({ sizeBytes: bytes.length }));
        ({ ticket } = created);
        handle = created.transfer.handle;
      }
      await store.transfers.append(ticket, {
        offset: piece * 1000,
        body: bodyOf(bytes.subarray(piece * 1000, piece * 1000 + 1000)),
      });
      if (piece === 19) {
        await store.transfers.status(me, handle, { waitMs: 5000 });
        expect((await read(store.transfers, handle)).equals(bytes)).toBe(true);
      }
      await store.close();
    }
    const last = await openTestStore({ dataDir: dir });
    await read(last.transfers, handle);
    await waitUntil(async () => segmentsOf(dir, handle) === 1);
    expect((await read(last.transfers, handle)).equals(bytes)).toBe(true);
  });
});

function segmentsOf(dataDir: string, handle: string): number {
  const db = new DatabaseSync(path.join(dataDir, "state.sqlite"), { readOnly: true });
  try {
    return Number(
      db
        .prepare(
          "select count(*) as n from segment join upload on upload.id = upload_id where handle = ? and length_bytes > 0",
        )
        .get(handle)?.n,
    );
  } finally {
    db.close();
  }
}
