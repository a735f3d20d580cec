import { createHash, randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { registerFileKinds } from "../../../src/tasks/kinds/register.ts";
import { openTestStore } from "../../support/engine.ts";
import { describeWithProgram } from "../../support/needs-program.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { keepBusy, me } from "../task-store.ts";
import { bytesOf, filenames, openKinds, putFile, resultOf, startKind, until } from "./kinds-store.ts";
import { madeBy, madeByPython } from "./make-archive.ts";

interface Extracted {
  readonly format: string;
  readonly count: number;
  readonly totalBytes: number;
  readonly files: readonly {
    readonly path: string;
    readonly handle: string;
    readonly size: number;
    readonly sha256: string;
  }[];
  readonly manifest?: { readonly handle: string; readonly filename: string };
}

const contents: Readonly<Record<string, Buffer>> = {
  "readme.txt": Buffer.from("hello\n"),
  "empty.bin": Buffer.alloc(0),
  "deep/er/noise.bin": randomBytes(3_000_000),
  "deep/zeros.bin": Buffer.alloc(2_000_000),
  "Ünïcode – 文件.txt": Buffer.from("text"),
  [`${"long-".repeat(40)}/${"name-".repeat(40)}.txt`]: Buffer.from("long name"),
};

async function folder(): Promise<string> {
  const dir = await tempDir();
  for (const [name, bytes] of Object.entries(contents)) {
    await mkdir(path.dirname(path.join(dir, name)), { recursive: true });
    await writeFile(path.join(dir, name), bytes);
  }
  await mkdir(path.join(dir, "nothing-in-it"));
  return dir;
}

/** What cannot seek back gets sizes and sums behind the bytes, and not before them. */
const toPipe = `
import os, sys, zipfile
class Pipe:
    def __init__(self, file): self.file = file
    def write(self, data): return self.file.write(data)
    def flush(self): self.file.flush()
with zipfile.ZipFile(Pipe(open(sys.argv[1], "wb")), "w", zipfile.ZIP_DEFLATED) as archive:
    for folder, _, names in os.walk("."):
        for name in names: archive.write(os.path.join(folder, name))
`;

const makers: readonly (readonly [string, string, readonly [string, ...string[]]])[] = [
  ["zip", "zip", ["zip", "-r", "{}", "."]],
  ["zip -0", "zip", ["zip", "-0", "-r", "{}", "."]],
  ["Python's zipfile", "zip", ["python3", "-m", "zipfile", "-c", "{}", "."]],
  ["Python's zipfile to a pipe", "zip", ["python3", "-c", toPipe, "{}"]],
  ["GNU tar", "tar", ["tar", "-cf", "{}", "."]],
  ["GNU tar --format=gnu", "tar", ["tar", "--format=gnu", "-cf", "{}", "."]],
  ["GNU tar --format=posix", "tar", ["tar", "--format=posix", "-cf", "{}", "."]],
  ["GNU tar -z", "tar.gz", ["tar", "-czf", "{}", "."]],
  [
    "Python's tarfile",
    "tar.gz",
    ["python3", "-c", "import sys, tarfile; tarfile.open(sys.argv[1], 'w:gz').add('.')", "{}"],
  ],
];

for (const [name, format, command] of makers) {
  describeWithProgram(command[0], `file_extract of what ${name} made`, () => {
    it("stores every file, under its path", async () => {
      const store = await openKinds();
      // Its name says nothing about what it is.
      const handle = await putFile(store, "upload.bin", await madeBy(command, await folder()));
      const result = await resultOf<Extracted>(store, "file_extract", { handle });
      expect([result.format, result.count]).toEqual([format, Object.keys(contents).length]);
      expect(result.totalBytes).toBe(
        Object.values(contents).reduce((sum, { byteLength }) => sum + byteLength, 0),
      );
      expect(result.files.map((file) => file.path).sort()).toEqual(Object.keys(contents).sort());
      for (const file of result.files) {
        const bytes = contents[file.path] ?? Buffer.alloc(0);
        expect([file.size, file.sha256]).toEqual([
          bytes.byteLength,
          createHash("sha256").update(bytes).digest("hex"),
        ]);
        expect((await store.transfers.status(me, file.handle)).filename).toBe(file.path);
        expect((await bytesOf(store, file.handle)).equals(bytes)).toBe(true);
      }
      expect(result.manifest).toBeUndefined();
    });
  });
}

describe("file_extract", () => {
  it("takes what file_archive makes", async () => {
    const store = await openKinds();
    const handles = [
      await putFile(store, "a.txt", "a"),
      await putFile(store, "b.txt", Buffer.alloc(100_000)),
    ];
    for (const format of ["zip", "tar", "tar.gz"]) {
      const { handle } = await resultOf<{ handle: string }>(store, "file_archive", { handles, format });
      const { files } = await resultOf<Extracted>(store, "file_extract", { handle });
      expect(files.map((file) => [file.path, file.size])).toEqual([
        ["a.txt", 1],
        ["b.txt", 100_000],
      ]);
    }
  });
});

describeWithProgram("python3", "file_extract of what Python wrote", () => {
  it("takes archives with nothing in them", async () => {
    const store = await openKinds();
    const programs = [
      "z().close()",
      "with z() as a: a.writestr('folder/', '')",
      "with t() as a: ti(a, 'folder', type=tarfile.DIRTYPE)",
    ];
    for (const program of programs) {
      const handle = await putFile(store, "none", await madeByPython(program));
      expect(await resultOf<Extracted>(store, "file_extract", { handle })).toMatchObject({
        count: 0,
        files: [],
      });
    }
  });

  it("names the first files in the result and all of them in a stored list where there are many", async () => {
    const store = await openKinds();
    const handle = await putFile(
      store,
      "many.zip",
      await madeByPython("with z() as a:\n  for n in range(700): a.writestr(f'd/{n:04}.txt', str(n))"),
    );
    const result = await resultOf<Extracted>(store, "file_extract", { handle });
    expect(result.count).toBe(700);
    expect(result.files.length).toBeLessThan(60);
    expect(JSON.stringify(result).length).toBeLessThan(20_000);
    const lines = (await bytesOf(store, result.manifest?.handle ?? "")).toString().trimEnd().split("\n");
    const files = lines.map((line) => JSON.parse(line) as Extracted["files"][number]);
    expect(files.map((file) => file.path)).toEqual(
      Array.from({ length: 700 }, (_, n) => `d/${String(n).padStart(4, "0")}.txt`),
    );
    expect(files[699]?.sha256).toBe(createHash("sha256").update("699").digest("hex"));
    expect(result.manifest?.filename).toBe("many.zip.files.jsonl");
  });

  it("cancelled while no process runs it leaves nothing but the archive", async () => {
    const dataDir = await tempDir();
    const before = await openKinds({ dataDir });
    const many = "with z() as a:\n  for n in range(3000): a.writestr(f'{n}', b'x')";
    const handle = await putFile(before, "archive", await madeByPython(many));
    const taskId = await startKind(before, "file_extract", { handle });
    await until(async () => ((await filenames(before)).length > 20 ? true : null));
    await before.close();
    // This one has the kind, and no place to run the task in.
    const now = await openTestStore({ dataDir, tasks: { concurrency: 1 } });
    await keepBusy(now);
    registerFileKinds(now.tasks, { transfers: now.transfers, allowImport: [], importRoots: [] });
    // The end of the other process may have taken a file that was not whole yet.
    expect((await filenames(now)).length).toBeGreaterThan(10);
    expect(await now.tasks.cancel(me, taskId)).toMatchObject({ status: "cancelled" });
    await until(async () => ((await filenames(now)).length === 1 ? true : null));
  });

  it.each(["zip", "tar"])("cancelled in the middle leaves nothing but the archive (%s)", async (format) => {
    const store = await openKinds();
    const make =
      format === "zip"
        ? "with z() as a:\n  for n in range(3000): a.writestr(f'{n}', b'x')"
        : "with t() as a:\n  for n in range(3000): ti(a, str(n))";
    const handle = await putFile(store, "archive", await madeByPython(make));
    const taskId = await startKind(store, "file_extract", { handle });
    await until(async () => ((await filenames(store)).length > 20 ? true : null));
    await store.tasks.cancel(me, taskId);
    const end = await until(async () => {
      const { status } = await store.tasks.get(me, taskId);
      return status === "working" ? null : status;
    });
    expect(end).toBe("cancelled");
    expect(await filenames(store)).toEqual(["archive"]);
  });
});
