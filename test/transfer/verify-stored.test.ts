import { openSync, readdirSync, rmSync, truncateSync, writeSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import type { StoredFault } from "../../src/transfer/engine.ts";
import { bodyOf, newFile, openTestStore, randomBytes } from "../support/engine.ts";

it("verify finds a missing, a shortened and a changed file, names each, and repairs nothing", async () => {
  const { transfers, dataDir } = await openTestStore();
  const store = async (name: string) =>
    (
      await transfers.createWith("local", newFile({ filename: name, sizeBytes: 50_000 }), {
        offset: 0,
        body: bodyOf(randomBytes(50_000)),
      })
    ).transfer.handle;
  const fine = await store("fine");
  const missing = await store("missing");
  const short = await store("short");
  const changed = await store("changed");
  await transfers.create("local", newFile({ sizeBytes: 0 }));
  await transfers.create("local", newFile({ sizeBytes: 10 }));
  const fileOf = (handle: string) => {
    const shard = path.join(dataDir, "blobs", handle.slice(-1));
    return path.join(shard, readdirSync(shard).find((name) => name.startsWith(handle.slice(3))) ?? "");
  };
  rmSync(fileOf(missing));
  truncateSync(fileOf(short), 49_999);
  writeSync(openSync(fileOf(changed), "r+"), Buffer.from("x".repeat(64)), 0, 64, 1000);

  for (let round = 0; round < 2; round += 1) {
    const faults: StoredFault[] = [];
    const report = await transfers.verify((fault) => faults.push(fault));
    expect(report).toEqual({ checkedFiles: 5, checkedBytes: 200_000, faults: 3 });
    expect(Object.fromEntries(faults.map(({ handle, fault }) => [handle, fault]))).toEqual({
      [missing]: "missing",
      [short]: "missing",
      [changed]: "digest",
    });
    expect(faults.some(({ handle }) => handle === fine)).toBe(false);
  }
});
