import { createHash, randomBytes } from "node:crypto";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { bytesOf, openKinds, putFile, resultOf, runKind } from "./kinds-store.ts";

const all = ["sha256", "sha1", "md5", "crc32c", "blake3"];

describe("file_checksum", () => {
  it("gives the published digests of short inputs", async () => {
    const store = await openKinds();
    const digestsOf = async (text: string) => {
      const handle = await putFile(store, "x", text);
      return (await resultOf<{ digests: object }>(store, "file_checksum", { handle, algorithms: all }))
        .digests;
    };
    // FIPS 180-4, RFC 1321, RFC 3720 B.4 and the vectors of BLAKE3.
    expect(await digestsOf("")).toEqual({
      sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
      sha1: "da39a3ee5e6b4b0d3255bfef95601890afd80709",
      md5: "d41d8cd98f00b204e9800998ecf8427e",
      crc32c: "00000000",
      blake3: "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
    });
    expect(await digestsOf("123456789")).toMatchObject({ crc32c: "e3069283" });
    expect(await digestsOf("abc")).toMatchObject({
      md5: "900150983cd24fb0d6963f7d28e17f72",
      blake3: "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85",
    });
  });

  it("reads a large file once, in a thread of its own", async () => {
    const store = await openKinds();
    const bytes = randomBytes(20_000_000);
    const handle = await putFile(store, "large.bin", bytes);
    const result = await resultOf<{ digests: Record<string, string> }>(store, "file_checksum", {
      handle,
      algorithms: all,
    });
    expect(result).toMatchObject({ handle, filename: "large.bin", size: bytes.byteLength });
    for (const algorithm of ["sha256", "sha1", "md5"]) {
      expect(result.digests[algorithm]).toBe(createHash(algorithm).update(bytes).digest("hex"));
    }
    // In pieces of any length the digests are those of the whole.
    const part = bytes.subarray(0, 1_000_000);
    const small = await putFile(store, "part.bin", part);
    const pieces = await resultOf<{ digests: Record<string, string> }>(store, "file_checksum", {
      handle: small,
      algorithms: ["blake3", "crc32c"],
    });
    const same = await putFile(store, "again.bin", Buffer.concat([part, bytes.subarray(1_000_000)]));
    const whole = await resultOf<{ digests: Record<string, string> }>(store, "file_checksum", {
      handle: same,
      algorithms: ["blake3", "crc32c"],
    });
    expect(whole.digests).toEqual({ blake3: result.digests.blake3, crc32c: result.digests.crc32c });
    expect(pieces.digests.blake3).not.toBe(whole.digests.blake3);
  });

  it("computes what was asked for and nothing else", async () => {
    const store = await openKinds();
    const handle = await putFile(store, "x", "abc");
    const { digests } = await resultOf<{ digests: object }>(store, "file_checksum", {
      handle,
      algorithms: ["md5", "md5"],
    });
    expect(Object.keys(digests)).toEqual(["md5"]);
  });

  it("fails for a handle that is not there, and for an unfinished upload", async () => {
    const store = await openKinds();
    const missing = await runKind(store, "file_checksum", {
      handle: `fh_${"a".repeat(26)}`,
      algorithms: ["md5"],
    });
    expect(missing.error).toMatchObject({ code: "unknown_handle" });
    const { transfer } = await store.transfers.create("local", {
      filename: "x",
      contentType: null,
      metadata: null,
      sizeBytes: 5,
      sha256: null,
      idempotencyKey: null,
    });
    const unfinished = await runKind(store, "file_checksum", {
      handle: transfer.handle,
      algorithms: ["md5"],
    });
    expect(unfinished.error).toMatchObject({ code: "not_active" });
  });

  it("does not pass off the digest of spoilt bytes as the file's", async () => {
    const store = await openKinds();
    const handle = await putFile(store, "x", "abc");
    const rows = new DatabaseSync(path.join(store.dataDir, "state.sqlite"), { timeout: 5_000 });
    rows.prepare("UPDATE upload SET sha256 = ? WHERE handle = ?").run("0".repeat(64), handle);
    rows.close();
    const task = await runKind(store, "file_checksum", { handle, algorithms: ["sha256"] });
    expect(task.error).toMatchObject({ code: "checksum_mismatch", retryable: false });
    expect(
      createHash("sha256")
        .update(await bytesOf(store, handle))
        .digest("hex"),
    ).toBe(createHash("sha256").update("abc").digest("hex"));
  });

  it("says which argument is wrong where it was started without its tool", async () => {
    const store = await openKinds();
    const task = await runKind(store, "file_checksum", { handle: "x", algorithms: ["crc16"] });
    expect(task.error).toMatchObject({ code: "invalid_param", param: "algorithms.0" });
  });
});
