/** What small files and records had of the disk goes back to it, in pieces, and the log never holds more than the ballast covers. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openSqliteState, type SqliteState } from "../../../src/store/state/sqlite.ts";
import { newBlob, newUpload } from "../../contract/transfer-state/fixture.ts";
import { smallDisk } from "../../support/small-disk.ts";
import { makeDataDir, openRows, removeDataDir } from "./sqlite-fixture.ts";

const mebibyte = 1 << 20;

let dataDir = "";
let store: SqliteState;

const open = async (): Promise<void> => {
  store = await openSqliteState({ dataDir, fsync: "never" });
};
const size = (name: string): number => statSync(join(dataDir, name), { throwIfNoEntry: false })?.size ?? 0;

beforeEach(async () => {
  dataDir = await makeDataDir();
});
afterEach(async () => {
  await store.close();
  await removeDataDir(dataDir);
});

/** Whole small files; returns the names of their bytes. Their records are removed again, or stay and are added to these handles. */
async function storeSmall(count: number, handles?: string[]): Promise<string[]> {
  const bytes = new Uint8Array(12_000).fill(7);
  const one = async (): Promise<string> => {
    const upload = newUpload({ sizeBytes: bytes.byteLength });
    const blob = `small:${newBlob()}`;
    await store.transfers.createUpload(upload);
    handles?.push(upload.handle);
    const outcome = await store.transfers.storeSmall({
      ...{ handle: upload.handle, generation: 1, bytes, sha256: "a".repeat(64), blob },
      ...{ fileTtlMs: null, uploadTtlMs: null },
    });
    expect(outcome.kind).toBe("ok");
    if (handles === undefined) await store.transfers.removeUpload(upload.handle, null);
    return blob;
  };
  return Promise.all(Array.from({ length: count }, one));
}

/** Pieces it took to the end. */
async function giveBack(all: boolean): Promise<number> {
  let pieces = 1;
  while (await store.transfers.giveBackSpace(all)) pieces += 1;
  return pieces;
}

describe("space of the SQLite state", () => {
  it("of files that are forgotten goes back to the disk piece by piece, and the others stay as they are", async () => {
    await open();
    const blobs = await storeSmall(1_500);
    const kept = blobs.filter((_, index) => index % 100 === 99);
    await store.transfers.forgetGarbage(blobs.filter((blob) => !kept.includes(blob)));
    expect(size("state.sqlite") + size("state.sqlite-wal")).toBeGreaterThan(20 * mebibyte);
    expect(await giveBack(true)).toBeGreaterThan(5);
    expect(size("state.sqlite")).toBeLessThan(2 * mebibyte);
    expect(size("state.sqlite-wal")).toBeLessThan(mebibyte);
    for (const blob of kept)
      expect(await store.transfers.smallFile(blob)).toEqual(new Uint8Array(12_000).fill(7));
    const rows = openRows(dataDir);
    expect(rows.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
    rows.close();
  });

  it("is kept in part for files to come, where the disk is not short of it", async () => {
    await open();
    await store.transfers.forgetGarbage(await storeSmall(1_500));
    await giveBack(false);
    expect(size("state.sqlite")).toBeGreaterThan(4 * mebibyte);
    expect(size("state.sqlite")).toBeLessThan(6 * mebibyte);
    expect(await giveBack(false)).toBe(1);
  });

  it("goes back once another process reads no longer, and nothing fails until then", async () => {
    await open();
    const blobs = await storeSmall(500);
    const reader = openRows(dataDir);
    reader.exec("BEGIN");
    expect(reader.prepare("SELECT count(*) AS n FROM small_file").get()).toEqual({ n: 500 });
    await store.transfers.forgetGarbage(blobs);
    await giveBack(true);
    expect(size("state.sqlite-wal")).toBeGreaterThan(mebibyte);
    expect(reader.prepare("SELECT count(*) AS n FROM small_file").get()).toEqual({ n: 500 });
    reader.close();
    await giveBack(true);
    expect(size("state.sqlite") + size("state.sqlite-wal")).toBeLessThan(mebibyte);
  });

  it("of a database made without the means for it is used again and stays", async () => {
    const old = new DatabaseSync(join(dataDir, "state.sqlite"));
    old.exec("PRAGMA journal_mode = WAL");
    old.close();
    await open();
    await store.transfers.forgetGarbage(await storeSmall(1_000));
    expect(await giveBack(true)).toBe(1);
    expect(size("state.sqlite")).toBeGreaterThan(10 * mebibyte);
    const before = size("state.sqlite");
    await storeSmall(500);
    await giveBack(true);
    expect(size("state.sqlite")).toBeLessThan(before + mebibyte);
  });

  it("that a long log has of its own on a full disk goes to no more than the ballast covers, and all can be deleted", async (context) => {
    const disk = smallDisk(40);
    if ("why" in disk) return context.skip(disk.why);
    const usual = dataDir;
    dataDir = join(disk.path, "data");
    try {
      await open();
      const handles: string[] = [];
      const reader = openRows(dataDir);
      reader.exec("BEGIN");
      reader.prepare("SELECT count(*) AS n FROM upload").get();
      for (let round = 0; round < 5; round += 1) await storeSmall(100, handles);
      reader.close();
      await storeSmall(10, handles);
      expect(size("state.sqlite-wal")).toBeGreaterThan(4 * mebibyte);
      disk.fill(0);
      const ballast = size("ballast");
      while (await storeSmall(10, handles).catch(() => null));
      const rows = openRows(dataDir);
      const pages = Number(rows.prepare("PRAGMA page_count").get()?.page_count);
      rows.close();
      expect(pages * 4096 - size("state.sqlite")).toBeLessThanOrEqual(ballast);
      for (const handle of handles)
        expect(await store.transfers.removeUpload(handle, null)).toMatchObject({ removed: true });
      expect(size("ballast")).toBe(ballast);
    } finally {
      disk.free();
      await store.close();
      disk.unmount();
      dataDir = usual;
    }
  });

  it("that the log still has to take from the disk is never more than the ballast covers", async () => {
    await open();
    const ballast = size("ballast");
    const rows = openRows(dataDir);
    let most = 0;
    for (let round = 0; round < 30; round += 1) {
      await storeSmall(100);
      const pages = Number(rows.prepare("PRAGMA page_count").get()?.page_count);
      most = Math.max(most, pages * 4096 - size("state.sqlite"));
    }
    rows.close();
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual((ballast * 3) / 4);
  });
});
