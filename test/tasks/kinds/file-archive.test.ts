import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import type { Store } from "../../../src/store/open-store.ts";
import { entryNames } from "../../../src/tasks/kinds/archive/entry-names.ts";
import { describeWithProgram } from "../../support/needs-program.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { me } from "../task-store.ts";
import {
  bytesOf,
  filenames,
  openKinds,
  putFile,
  resultOf,
  runKind,
  startKind,
  until,
} from "./kinds-store.ts";

interface Archived {
  readonly handle: string;
  readonly filename: string;
  readonly size: number;
  readonly sha256: string;
  readonly files: number;
}

const contents: Readonly<Record<string, Buffer>> = {
  "plain.txt": Buffer.from("hello\n".repeat(50_000)),
  "empty.bin": Buffer.alloc(0),
  "noise.bin": randomBytes(3_000_000),
  "noise.jpg": randomBytes(100_000),
  "Ünïcode – 文件.txt": Buffer.from("text"),
  [`${"long-".repeat(45)}.txt`]: Buffer.from("long name"),
};

async function putAll(store: Store): Promise<string[]> {
  const handles: string[] = [];
  for (const [name, bytes] of Object.entries(contents)) handles.push(await putFile(store, name, bytes));
  return handles;
}

const untar = "import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])";
const unzip = "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])";

/** `{}` stands for the archive, `{out}` for the folder. */
const unpackers: readonly (readonly [string, readonly [string, ...string[]]])[] = [
  ["zip", ["unzip", "-q", "{}", "-d", "{out}"]],
  ["zip", ["python3", "-c", unzip, "{}", "{out}"]],
  ["tar", ["python3", "-W", "ignore", "-c", untar, "{}", "{out}"]],
  ["tar.gz", ["python3", "-W", "ignore", "-c", untar, "{}", "{out}"]],
  ["tar", ["tar", "-xf", "{}", "-C", "{out}"]],
  ["tar.gz", ["tar", "-xzf", "{}", "-C", "{out}"]],
];

async function unpacked(
  bytes: Buffer,
  [program, ...args]: readonly [string, ...string[]],
): Promise<Record<string, Buffer>> {
  const dir = await tempDir();
  const file = path.join(dir, "archive");
  const out = path.join(dir, "out");
  await writeFile(file, bytes);
  await mkdir(out);
  const paths: Readonly<Record<string, string>> = { "{}": file, "{out}": out };
  execFileSync(
    program,
    args.map((arg) => paths[arg] ?? arg),
    // The names in unzip's output and on the disk are those of the archive only where the locale has Unicode.
    { env: { ...process.env, LC_ALL: "C.UTF-8" } },
  );
  const names = await readdir(out);
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await readFile(path.join(out, name))])),
  );
}

for (const [format, command] of unpackers) {
  describeWithProgram(command[0], `file_archive and ${command[0]}`, () => {
    it(`make a ${format} and unpack it to the same files`, async () => {
      const store = await openKinds();
      const handles = await putAll(store);
      const { handle } = await resultOf<Archived>(store, "file_archive", { handles, format });
      const files = await unpacked(await bytesOf(store, handle), command);
      expect(Object.keys(files).sort()).toEqual(Object.keys(contents).sort());
      for (const [name, content] of Object.entries(contents)) expect(files[name]?.equals(content)).toBe(true);
    });
  });
}

describe("file_archive", () => {
  it.each(["zip", "tar", "tar.gz"])(
    "tells name, size, digest and number of files of a %s",
    async (format) => {
      const store = await openKinds();
      const handles = await putAll(store);
      const result = await resultOf<Archived>(store, "file_archive", { handles, format, filename: "all" });
      expect(result).toMatchObject({ filename: "all", files: handles.length });
      const bytes = await bytesOf(store, result.handle);
      const digest = createHash("sha256").update(bytes).digest("hex");
      expect([result.size, result.sha256]).toEqual([bytes.byteLength, digest]);
      const { contentType } = await store.transfers.status(me, result.handle);
      expect(contentType).toMatch(/^application\/(zip|x-tar|gzip)$/);
    },
  );

  it.each(["zip", "tar", "tar.gz"])(
    "makes the same bytes of the same files each time (%s)",
    async (format) => {
      const store = await openKinds();
      const handles = await putAll(store);
      const first = await resultOf<Archived>(store, "file_archive", { handles, format });
      const second = await resultOf<Archived>(store, "file_archive", { handles, format });
      expect(second.sha256).toBe(first.sha256);
      expect(first.filename).toBe(`archive.${format}`);
    },
  );

  it("compresses what can be, and does not try again what is", async () => {
    const store = await openKinds();
    const handles = [
      await putFile(store, "zeros.txt", Buffer.alloc(1_000_000)),
      await putFile(store, "zeros.png", Buffer.alloc(1_000_000)),
    ];
    const { size } = await resultOf<Archived>(store, "file_archive", { handles, format: "zip" });
    expect(size).toBeGreaterThan(1_000_000);
    expect(size).toBeLessThan(1_010_000);
  });

  it("fails before it packs anything where a handle is not there", async () => {
    const store = await openKinds();
    const handles = [await putFile(store, "a", "a"), `fh_${"a".repeat(26)}`];
    const task = await runKind(store, "file_archive", { handles, format: "zip" });
    expect(task.error).toMatchObject({ code: "unknown_handle" });
    expect(await filenames(store)).toEqual(["a"]);
  });

  it.each(["zip", "tar", "tar.gz"])(
    "fails and leaves no archive where it becomes too large (%s)",
    async (format) => {
      const store = await openKinds({ limits: { maxFileBytes: 1_000_000 } });
      const handles = [
        await putFile(store, "a", randomBytes(900_000)),
        await putFile(store, "b", randomBytes(900_000)),
      ];
      const task = await runKind(store, "file_archive", { handles, format });
      expect(task.error).toMatchObject({ code: "file_too_large" });
      expect((await filenames(store)).sort()).toEqual(["a", "b"]);
    },
  );

  it.each(["zip", "tar.gz"])("cancelled in the middle leaves no archive (%s)", async (format) => {
    const store = await openKinds();
    const handles: string[] = [];
    for (let n = 0; n < 6; n += 1) handles.push(await putFile(store, `noise ${n}`, randomBytes(8_000_000)));
    const taskId = await startKind(store, "file_archive", { handles, format });
    await until(async () => ((await filenames(store)).length > 6 ? true : null));
    await store.tasks.cancel(me, taskId);
    const end = await until(async () => {
      const { status } = await store.tasks.get(me, taskId);
      return status === "working" ? null : status;
    });
    expect(end).toBe("cancelled");
    expect(await filenames(store)).toHaveLength(6);
  });
});

describe("the names inside an archive", () => {
  it.each([
    [
      ["a.txt", "a.txt", "A.TXT", "a (2).txt"],
      ["a.txt", "a (2).txt", "A (3).TXT", "a (2) (2).txt"],
    ],
    [
      ["x.tar.gz", "x.tar.gz", "README", "README"],
      ["x.tar.gz", "x (2).tar.gz", "README", "README (2)"],
    ],
    [
      ["../../etc/passwd", "/etc/passwd", "..\\x", "C:\\x", "c:x"],
      [".._.._etc_passwd", "_etc_passwd", ".._x", "C__x", "c_x"],
    ],
    [
      ["..", ".", "", "a\u0000b\n"],
      ["_.", "_", "_ (2)", "a_b_"],
    ],
    [
      ["e\u0301.txt", "\u00e9.txt"],
      ["e\u0301.txt", "\u00e9 (2).txt"],
    ],
  ])("of %j are %j", (filenames_, names) => {
    expect(entryNames(filenames_)).toEqual(names);
  });

  it.each(["n", "文", "😀"])(
    "are never longer than file systems take, and keep their extension (%s)",
    (letter) => {
      const names = entryNames([`${letter.repeat(300)}.csv`, `${letter.repeat(300)}.csv`]);
      for (const name of names) {
        expect([Buffer.byteLength(name) <= 255, name.endsWith(".csv"), name.isWellFormed()]).toEqual([
          true,
          true,
          true,
        ]);
        expect(Buffer.byteLength(name)).toBeGreaterThan(240);
      }
      expect(new Set(names).size).toBe(2);
    },
  );
});
