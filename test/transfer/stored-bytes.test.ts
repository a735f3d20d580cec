import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import type { BlobReader, BlobStore } from "../../src/transfer/blob-store.ts";
import { readStored, StoredBytes, streamStored } from "../../src/transfer/stored-bytes.ts";
import { waitUntil } from "../support/wait-until.ts";

const segmentOf = (blob: string, start: number, length: number) => ({
  handle: "fh_",
  generation: 1,
  seq: start,
  fence: 1,
  blob,
  blobOffset: 0,
  start,
  length,
});

/** Blobs of the letter that is their name, which open when the test says so. */
function heldBlobs(): { blobs: BlobStore; open: () => number; asked: () => number; letOpen: () => void } {
  let open = 0;
  let asked = 0;
  const gate = Promise.withResolvers<void>();
  const blobs: Pick<BlobStore, "open"> = {
    async open(name): Promise<BlobReader> {
      asked += 1;
      await gate.promise;
      open += 1;
      return {
        async read(target) {
          target.fill(name.charCodeAt(0));
          return target.byteLength;
        },
        async close() {
          open -= 1;
        },
      };
    },
  };
  return { blobs: blobs as BlobStore, open: () => open, asked: () => asked, letOpen: gate.resolve };
}

test("a reader that leaves while a blob is being opened leaves nothing open", async () => {
  const held = heldBlobs();
  const stream = streamStored(held.blobs, [segmentOf("a", 0, 100)], 0, 100).on("error", () => {});
  stream.resume();
  await waitUntil(() => held.asked() === 1);
  stream.destroy();
  await turn();
  held.letOpen();
  await turn();
  await turn();
  expect(held.open()).toBe(0);
});

test("what is closed reads nothing more, and opens nothing", async () => {
  const held = heldBlobs();
  held.letOpen();
  const bytes = new StoredBytes(held.blobs, [segmentOf("a", 0, 10), segmentOf("b", 10, 10)]);
  const target = Buffer.alloc(20);
  expect(await bytes.read(target, 5)).toBe(5);
  expect(await bytes.read(target, 10)).toBe(10);
  expect(held.open()).toBe(1);
  await bytes.close();
  await expect(bytes.read(target, 0)).rejects.toThrow("closed");
  expect(held.open()).toBe(0);
});

test("a run in one piece goes over all segments that it touches, and closes them", async () => {
  const held = heldBlobs();
  held.letOpen();
  const segments = [segmentOf("a", 0, 3), segmentOf("b", 3, 3), segmentOf("c", 6, 3)];
  expect((await readStored(held.blobs, segments, 1, 8)).toString()).toBe("aabbbcc");
  await expect(readStored(held.blobs, segments, 5, 12)).rejects.toMatchObject({
    code: "storage_unavailable",
  });
  expect(held.open()).toBe(0);
});
