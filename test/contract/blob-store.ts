/** What every blob store promises (`src/transfer/blob-store.ts`), as tests to run over each backend. */
import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { BlobStore } from "../../src/transfer/blob-store.ts";
import { newBlobName, newHandle } from "../../src/transfer/identifiers.ts";

async function readAll(blobs: BlobStore, name: string): Promise<Buffer> {
  const reader = await blobs.open(name);
  const pieces: Buffer[] = [];
  for (let position = 0; ; ) {
    const piece = Buffer.alloc(70_000);
    const got = await reader.read(piece, position);
    if (got === 0) break;
    pieces.push(piece.subarray(0, got));
    position += got;
  }
  await reader.close();
  return Buffer.concat(pieces);
}

export function blobStoreContract(backend: string, open: () => Promise<BlobStore>): void {
  describe(`blob store: ${backend}`, () => {
    it("gives back what was written in pieces, after the writer synced and closed", async () => {
      const blobs = await open();
      const name = newBlobName(newHandle());
      const bytes = randomBytes(300_001);
      const writer = await blobs.create(name);
      await writer.write([bytes.subarray(0, 1), bytes.subarray(1, 100_000)], 0);
      await writer.write([bytes.subarray(100_000)], 100_000);
      await writer.sync();
      await writer.close();
      expect((await readAll(blobs, name)).equals(bytes)).toBe(true);
      expect((await blobs.stat(name))?.sizeBytes).toBe(300_001);
    });

    it("drops what stands behind a cut, keeps what stands before, and takes writes from there", async () => {
      const blobs = await open();
      const name = newBlobName(newHandle());
      const writer = await blobs.create(name);
      await writer.write([Buffer.from("abcdefgh")], 0);
      await writer.cut(3);
      expect((await blobs.stat(name))?.sizeBytes).toBe(3);
      await writer.write([Buffer.from("xyz")], 3);
      await writer.sync();
      await writer.close();
      expect((await readAll(blobs, name)).toString()).toBe("abcxyz");
    });

    it("takes more pieces in one write than the operating system gathers at once", async () => {
      const blobs = await open();
      const name = newBlobName(newHandle());
      const pieces = Array.from({ length: 3000 }, (_, index) => Buffer.from(`${index},`));
      const writer = await blobs.create(name);
      await writer.write(pieces, 0);
      await writer.close();
      expect((await readAll(blobs, name)).equals(Buffer.concat(pieces))).toBe(true);
    });

    it("never opens or changes a blob that exists: creating it again rejects and its bytes stay", async () => {
      const blobs = await open();
      const name = newBlobName(newHandle());
      const writer = await blobs.create(name);
      await writer.write([Buffer.from("first")], 0);
      await writer.close();
      await expect(blobs.create(name)).rejects.toMatchObject({ code: "storage_unavailable" });
      expect((await readAll(blobs, name)).toString()).toBe("first");
    });

    it("lets a reader see what is written while the writer is still open", async () => {
      const blobs = await open();
      const name = newBlobName(newHandle());
      const writer = await blobs.create(name);
      await writer.write([Buffer.from("abc")], 0);
      expect((await readAll(blobs, name)).toString()).toBe("abc");
      await writer.write([Buffer.from("def")], 3);
      expect((await readAll(blobs, name)).toString()).toBe("abcdef");
      await writer.close();
    });

    it("syncs many writers at once, each with its name", async () => {
      const blobs = await open();
      const names = Array.from({ length: 40 }, () => newBlobName(newHandle()));
      await Promise.all(
        names.map(async (name) => {
          const writer = await blobs.create(name);
          await writer.write([Buffer.from(name)], 0);
          await writer.sync();
          await writer.sync();
          await writer.close();
        }),
      );
      for (const name of names) expect((await readAll(blobs, name)).toString()).toBe(name);
    });

    it("says null of a blob that is not there, rejects opening it, and removes it without complaint", async () => {
      const blobs = await open();
      const name = newBlobName(newHandle());
      expect(await blobs.stat(name)).toBeNull();
      await expect(blobs.open(name)).rejects.toMatchObject({ code: "storage_unavailable" });
      await blobs.remove(name);
    });

    it("removes a blob for good and lists exactly the others", async () => {
      const blobs = await open();
      const names = Array.from({ length: 5 }, () => newBlobName(newHandle()));
      for (const name of names) await (await blobs.create(name)).close();
      const [first = "", ...others] = names;
      await blobs.remove(first);
      const listed: string[] = [];
      for await (const batch of blobs.list()) {
        expect(batch.length).toBeLessThanOrEqual(1000);
        for (const { name, modifiedAt } of batch) {
          listed.push(name);
          expect(Math.abs(Date.now() - modifiedAt.getTime())).toBeLessThan(60_000);
        }
      }
      expect(listed.toSorted()).toEqual(others.toSorted());
    });

    it.each([
      "",
      "../../etc/passwd",
      "a/b",
      `${"a".repeat(32)}.${"b".repeat(15)}/`,
      "A".repeat(49),
      "..",
      `${"a".repeat(32)}.${"b".repeat(16)}\0`,
    ])("refuses %j, which is no name of a blob, for every operation", async (name) => {
      const blobs = await open();
      await expect((async () => blobs.create(name))()).rejects.toMatchObject({ code: "internal_error" });
      await expect((async () => blobs.open(name))()).rejects.toMatchObject({ code: "internal_error" });
      await expect((async () => blobs.stat(name))()).rejects.toMatchObject({ code: "internal_error" });
      await expect((async () => blobs.remove(name))()).rejects.toMatchObject({ code: "internal_error" });
      expect(() => blobs.path(name)).toThrow();
    });

    it("tells the free bytes", async () => {
      expect(await (await open()).freeBytes()).toBeGreaterThan(0);
    });
  });
}
