import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { beforeEach, describe, expect, it } from "vitest";
import { describeWithProgram } from "../../support/needs-program.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { ended, keepBusy, me } from "../task-store.ts";
import { filenames, openKinds, resultOf, runKind } from "./kinds-store.ts";

const bytes = randomBytes(2_000_000);
const sha256 = createHash("sha256").update(bytes).digest("hex");

describe("file_import of file: URLs", () => {
  let dir = "";
  let root = "";
  beforeEach(async () => {
    dir = await tempDir();
    root = path.join(dir, "allowed");
    await mkdir(path.join(root, "deep"), { recursive: true });
    await mkdir(path.join(dir, "allowed-not"));
    await writeFile(path.join(root, "deep", "a b.bin"), bytes);
    await writeFile(path.join(dir, "secret.txt"), "secret");
    await writeFile(path.join(dir, "allowed-not", "near.txt"), "near");
  });
  const open = () => openKinds({ kinds: { importRoots: [root] } });
  const urlOf = (file: string): string => pathToFileURL(file).href;

  it("takes a file under an allowed folder, and an empty one", async () => {
    await writeFile(path.join(root, "empty"), "");
    const store = await open();
    const url = urlOf(path.join(root, "deep", "a b.bin"));
    expect(await resultOf(store, "file_import", { url, sha256 })).toMatchObject({
      filename: "a b.bin",
      size: bytes.byteLength,
      sha256,
    });
    expect(await resultOf(store, "file_import", { url: urlOf(path.join(root, "empty")) })).toMatchObject({
      size: 0,
    });
  });

  it("follows links that stay inside, of files and of folders", async () => {
    await symlink("deep/a b.bin", path.join(root, "link.bin"));
    await symlink("deep", path.join(root, "folder"));
    const store = await open();
    expect(await resultOf(store, "file_import", { url: urlOf(path.join(root, "link.bin")) })).toMatchObject({
      filename: "link.bin",
      sha256,
    });
    expect(
      await resultOf(store, "file_import", { url: urlOf(path.join(root, "folder", "a b.bin")) }),
    ).toMatchObject({ sha256 });
  });

  it("goes by the rules of the process where it was asked for, whichever runs it", async () => {
    const dataDir = await tempDir();
    const url = urlOf(path.join(root, "deep", "a b.bin"));
    const key = { kind: "file_import", args: { url }, idempotencyKey: "same" };
    // No place in the one that is asked: the other has to run it.
    for (const [asked, other, status] of [
      [[root], [], "completed"],
      [[], [root], "failed"],
    ] as const) {
      const asking = await openKinds({
        dataDir,
        tasks: { concurrency: 1 },
        kinds: { importRoots: [...asked] },
      });
      await keepBusy(asking);
      const running = await openKinds({ dataDir, kinds: { importRoots: [...other] } });
      const { task } = await asking.tasks.start(me, key);
      expect((await running.tasks.start(me, key)).created).toBe(false);
      expect(await ended(running.tasks, task.taskId)).toMatchObject({ status });
      key.idempotencyKey += "-next";
      await Promise.all([asking.close(), running.close()]);
    }
  });

  it("takes an allowed folder that is a link itself", async () => {
    await symlink(root, path.join(dir, "alias"));
    const store = await openKinds({ kinds: { importRoots: [path.join(dir, "alias")] } });
    expect(
      await resultOf(store, "file_import", { url: urlOf(path.join(dir, "alias", "deep", "a b.bin")) }),
    ).toMatchObject({ sha256 });
  });

  it("refuses what is outside, however it is reached, and does not tell whether it is there", async () => {
    await symlink(path.join(dir, "secret.txt"), path.join(root, "out.txt"));
    await symlink(dir, path.join(root, "out"));
    await symlink("../secret.txt", path.join(root, "deep", "up.txt"));
    const store = await open();
    const messages = new Set<string>();
    const urls = [
      urlOf(path.join(dir, "secret.txt")),
      urlOf(path.join(dir, "no-such-file")),
      `${urlOf(root)}/../secret.txt`,
      `${urlOf(root)}/%2e%2e/secret.txt`,
      urlOf(path.join(root, "out.txt")),
      urlOf(path.join(root, "out", "secret.txt")),
      urlOf(path.join(dir, "allowed-not", "near.txt")),
      "file:///etc/passwd",
      "file:///proc/self/environ",
    ];
    for (const url of urls) {
      const { error } = await runKind(store, "file_import", { url });
      expect([url, error?.code]).toEqual([url, "url_not_allowed"]);
      messages.add(error?.message ?? "");
    }
    expect(messages.size).toBe(1);
    expect(await filenames(store)).toEqual([]);
  });

  it("refuses every file URL where no folder is allowed", async () => {
    const store = await openKinds();
    const { error } = await runKind(store, "file_import", { url: urlOf(path.join(root, "deep", "a b.bin")) });
    expect(error).toMatchObject({
      code: "url_not_allowed",
      recoveryHint: expect.stringContaining("LONGSHORE_IMPORT_ROOTS"),
    });
  });

  it("fails for what is no plain file of this machine", async () => {
    const store = await open();
    for (const name of ["deep", "missing"]) {
      const { error } = await runKind(store, "file_import", { url: urlOf(path.join(root, name)) });
      expect(error?.code).toBe("task_failed");
    }
    const elsewhere = await runKind(store, "file_import", { url: "file://other-host/share/x" });
    expect(elsewhere.error?.code).toBe("invalid_param");
  });

  describeWithProgram("mkfifo", "and a named pipe", () => {
    it("does not wait for its writer", async () => {
      execFileSync("mkfifo", [path.join(root, "pipe")]);
      const store = await open();
      const { error } = await runKind(store, "file_import", { url: urlOf(path.join(root, "pipe")) });
      expect(error?.code).toBe("task_failed");
    });
  });

  it("never stores a file from outside while a folder on the way turns into a link and back", async () => {
    await mkdir(path.join(dir, "outside"));
    await writeFile(path.join(dir, "outside", "x"), "secret");
    await mkdir(path.join(root, "turning"));
    await writeFile(path.join(root, "turning", "x"), "public");
    await symlink(path.join(dir, "outside"), path.join(root, "door"));
    const store = await open();
    let turning = true;
    const turn = async (): Promise<void> => {
      while (turning) {
        await rename(path.join(root, "turning"), path.join(root, "aside"));
        await rename(path.join(root, "door"), path.join(root, "turning"));
        await rename(path.join(root, "turning"), path.join(root, "door"));
        await rename(path.join(root, "aside"), path.join(root, "turning"));
      }
    };
    const turned = turn();
    const ends = new Set<string>();
    for (let n = 0; n < 40; n += 1) {
      const task = await runKind(store, "file_import", { url: urlOf(path.join(root, "turning", "x")) });
      ends.add(
        task.status === "completed" ? (task.result as { sha256: string }).sha256 : String(task.error?.code),
      );
    }
    turning = false;
    await turned;
    ends.delete(createHash("sha256").update("public").digest("hex"));
    for (const end of ends) expect(["url_not_allowed", "task_failed"]).toContain(end);
    await rm(path.join(root, "door"));
  });
});
