import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { diskError, openFileBlobs } from "../../../src/store/blobs/file-blobs.ts";
import { newBlobName, newHandle } from "../../../src/transfer/identifiers.ts";
import { blobStoreContract } from "../../contract/blob-store.ts";
import { tempDir } from "../../support/temp-dir.ts";

blobStoreContract("files", async () =>
  openFileBlobs({ dir: path.join(await tempDir(), "blobs"), fsync: "always" }),
);
blobStoreContract("files without fsync", async () => openFileBlobs({ dir: await tempDir(), fsync: "never" }));

describe("file blobs", () => {
  it("keep files to their owner: 0600, and folders 0700", async () => {
    const dir = path.join(await tempDir(), "blobs");
    const blobs = openFileBlobs({ dir, fsync: "always" });
    const name = newBlobName(newHandle());
    await (await blobs.create(name)).close();
    const file = blobs.path(name) ?? "";
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(path.dirname(file)).mode & 0o777).toBe(0o700);
    expect(readdirSync(dir)).toHaveLength(32);
  });

  it.each([
    ["ENOSPC", "storage_full"],
    ["EDQUOT", "storage_full"],
    ["EFBIG", "storage_full"],
    ["EIO", "storage_unavailable"],
    ["EMFILE", "storage_unavailable"],
    ["EROFS", "storage_unavailable"],
  ])("%s of the disk becomes %s, with the cause kept out of the message", (code, expected) => {
    const cause = Object.assign(new Error(`${code}: /secret/path`), { code });
    const error = diskError(cause);
    expect(error).toMatchObject({ code: expected, cause });
    expect(error.message).not.toContain("secret");
    expect(error.options.retryAfterSeconds).toBeGreaterThan(0);
  });

  it("answer a disk that fills up in the middle with storage_full, and keep what was written before", async ({
    skip,
  }) => {
    const dir = await tempDir();
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", dir], { stdio: "ignore" });
    } catch {
      return skip("this machine does not let the test mount a small tmpfs");
    }
    try {
      const blobs = openFileBlobs({ dir, fsync: "always" });
      const name = newBlobName(newHandle());
      const writer = await blobs.create(name);
      await writer.write([Buffer.alloc(100_000, 1)], 0);
      await expect(
        writer.write([Buffer.alloc(700_000, 2), Buffer.alloc(700_000, 3)], 100_000),
      ).rejects.toMatchObject({
        code: "storage_full",
      });
      await writer.close();
      const head = Buffer.alloc(100_000);
      const reader = await blobs.open(name);
      expect(await reader.read(head, 0)).toBe(100_000);
      await reader.close();
      expect(head.every((byte) => byte === 1)).toBe(true);
      await blobs.remove(name);
      expect(existsSync(blobs.path(name) ?? "")).toBe(false);
    } finally {
      execFileSync("umount", [dir]);
    }
  });
});
