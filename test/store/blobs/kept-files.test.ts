import { rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { openFileBlobs } from "../../../src/store/blobs/file-blobs.ts";
import { KeptFiles } from "../../../src/store/blobs/kept-files.ts";
import { newBlobName, newHandle } from "../../../src/transfer/identifiers.ts";
import { openBelow, tellsOpenFiles } from "../../support/open-files.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { waitUntil } from "../../support/wait-until.ts";

async function filesIn(count: number): Promise<{ dir: string; files: string[] }> {
  const dir = await tempDir();
  const files = Array.from({ length: count }, (_, n) => path.join(dir, String(n)));
  for (const file of files) writeFileSync(file, file);
  return { dir, files };
}

describe.skipIf(!tellsOpenFiles)("files kept open for reading", () => {
  it("are opened once for many readers, and once more for those that come right after", async () => {
    const { dir, files } = await filesIn(1);
    const kept = new KeptFiles({ idleMs: 60_000 });
    const readers = await Promise.all(Array.from({ length: 20 }, () => kept.open(String(files[0]))));
    expect(new Set(readers.map(({ fd }) => fd)).size).toBe(1);
    for (const reader of readers) await reader.close();
    const again = await kept.open(String(files[0]));
    expect(again.fd).toBe(readers[0]?.fd);
    await again.close();
    expect(openBelow(dir)).toBe(1);
    await kept.close();
    expect(openBelow(dir)).toBe(0);
  });

  it("are let go of when nobody has read them for a moment", async () => {
    const { dir, files } = await filesIn(3);
    const kept = new KeptFiles();
    for (const file of files) await (await kept.open(file)).close();
    const used = await kept.open(String(files[0]));
    await waitUntil(() => openBelow(dir) === 1);
    await used.close();
    await waitUntil(() => openBelow(dir) === 0);
    await kept.close();
  });

  it("are 64 at most while nobody reads them, and the last ones read", async () => {
    const { dir, files } = await filesIn(100);
    const kept = new KeptFiles({ idleMs: 60_000 });
    const readers = await Promise.all(files.map((file) => kept.open(file)));
    expect(openBelow(dir)).toBe(100);
    for (const reader of readers) await reader.close();
    expect(openBelow(dir)).toBe(64);
    expect((await kept.open(String(files[99]))).fd).toBe(readers[99]?.fd);
    await kept.close();
    expect(openBelow(dir)).toBe(1);
    await readers[99]?.close();
    expect(openBelow(dir)).toBe(0);
  });

  it("that cannot be opened are asked for again by the next", async () => {
    const { dir, files } = await filesIn(1);
    const kept = new KeptFiles();
    const missing = path.join(dir, "missing");
    const both = await Promise.allSettled([kept.open(missing), kept.open(missing)]);
    expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    writeFileSync(missing, "there now");
    await (await kept.open(missing)).close();
    await (await kept.open(String(files[0]))).close();
    await kept.close();
    expect(openBelow(dir)).toBe(0);
  });

  it("that are forgotten go with their last reader, and are never lent again", async () => {
    const { dir, files } = await filesIn(1);
    const file = String(files[0]);
    const kept = new KeptFiles({ idleMs: 60_000 });
    const reader = await kept.open(file);
    rmSync(file);
    await kept.forget(file);
    await expect(kept.open(file)).rejects.toMatchObject({ code: "ENOENT" });
    writeFileSync(file, "another");
    const other = await kept.open(file);
    expect(other.fd).not.toBe(reader.fd);
    await reader.close();
    await other.close();
    expect(openBelow(dir)).toBe(1);
    await kept.forget(file);
    expect(openBelow(dir)).toBe(0);
    await kept.close();
  });

  it("go first where descriptors have run out, and what needed one is opened after all", async () => {
    const { dir, files } = await filesIn(3);
    const kept = new KeptFiles({ idleMs: 60_000 });
    for (const file of files) await (await kept.open(file)).close();
    const reader = await kept.open(String(files[0]));
    const scarce = async () => {
      if (openBelow(dir) > 1) throw Object.assign(new Error("too many open files"), { code: "EMFILE" });
      return "opened";
    };
    expect(await kept.withDescriptors(scarce)).toBe("opened");
    expect(openBelow(dir)).toBe(1);
    const never = () => Promise.reject(Object.assign(new Error("too many open files"), { code: "ENFILE" }));
    await expect(kept.withDescriptors(never)).rejects.toMatchObject({ code: "ENFILE" });
    await reader.close();
    await kept.close();
  });

  it("give their room on the disk back as soon as the blob is removed", async () => {
    const dir = await tempDir();
    const blobs = openFileBlobs({ dir, fsync: "never" });
    const name = newBlobName(newHandle());
    await (await blobs.create(name)).close();
    await (await blobs.open(name)).close();
    expect(openBelow(String(blobs.path(name)))).toBe(1);
    await blobs.remove(name);
    expect(openBelow(String(blobs.path(name)))).toBe(0);
    await blobs.close();
  });
});
