import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { beforeAll, describe, expect, it } from "vitest";
import type { Store } from "../../../src/store/open-store.ts";
import { registerFileKinds } from "../../../src/tasks/kinds/register.ts";
import { describeWithProgram } from "../../support/needs-program.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { sharedStore } from "../task-store.ts";
import { filenames, putFile, runKind } from "./kinds-store.ts";
import { madeBy, madeByPython } from "./make-archive.ts";

const limits = {
  maxEntries: 100,
  maxTotalBytes: 20_000_000,
  maxFileBytes: 10_000_000,
  maxRatio: 100,
  ratioFromBytes: 1_000_000,
};

const shared = sharedStore();
let store: Store;
beforeAll(() => {
  store = shared();
  registerFileKinds(store.tasks, {
    transfers: store.transfers,
    allowImport: [],
    importRoots: [],
    extractLimits: limits,
  });
});

async function refusal(
  archive: Buffer,
): Promise<{ code: string | undefined; message: string; left: (string | null)[] }> {
  const handle = await putFile(store, "archive", archive);
  const before = await filenames(store);
  const task = await runKind(store, "file_extract", { handle });
  const left = await filenames(store);
  await store.transfers.removeOwn("local", handle);
  expect(left).toEqual(before);
  expect(task.status).toBe("failed");
  expect(task.error?.recoveryHint).toContain("file_extract");
  return { code: task.error?.code, message: task.error?.message ?? "", left };
}

const names = [
  "../x",
  "a/../../x",
  "..",
  "/etc/passwd",
  "a\\\\b",
  "C:/x",
  "c:x",
  "a\\nb",
  "/".repeat(3),
  `${"d/".repeat(40)}x`,
  "n".repeat(300),
];

describeWithProgram("python3", "file_extract keeps nothing of a zip", () => {
  it.each(names)("that has a file named %s", async (name) => {
    const { code, message } = await refusal(
      await madeByPython(`with z() as a:\n  zi('good', z=a)\n  zi('${name}', z=a)`),
    );
    expect([code, message]).toEqual(["task_failed", expect.stringMatching(/refused|damaged/)]);
  });

  it.each([
    ["a symbolic link", "zi('link', 0o120777, b'/etc/passwd', z=a)", "link or a device"],
    [
      "a symbolic link that says it is from no Unix",
      "zi('link', 0o120777, b'/etc/passwd', z=a, system=0)",
      "link or a device",
    ],
    [
      "a symbolic link that says it is from Darwin",
      "zi('link', 0o120777, b'/etc/passwd', z=a, system=19)",
      "link or a device",
    ],
    ["a device", "zi('dev', 0o020666, z=a)", "link or a device"],
    ["a named pipe", "zi('pipe', 0o010666, z=a)", "link or a device"],
    ["a socket", "zi('socket', 0o140666, z=a)", "link or a device"],
    ["a device that says it is from no Unix", "zi('dev', 0o060666, z=a, system=0)", "link or a device"],
    ["a named pipe that says it is from NTFS", "zi('pipe', 0o010666, z=a, system=10)", "link or a device"],
    ["a socket that says it is from Darwin", "zi('socket', 0o140666, z=a, system=19)", "link or a device"],
    [
      "a folder without a slash that says it is from no Unix",
      "zi('folder', 0o040755, b'', z=a, system=0)",
      "neither a file nor a folder",
    ],
    ["a folder with bytes in it", "zi('folder/', 0o040755, b'bytes', z=a)", "neither a file nor a folder"],
    ["two files of one name", "zi('same', z=a); zi('same', z=a)", "two files named"],
    ["two files of one name written differently", "zi('same', z=a); zi('./same', z=a)", "two files named"],
    ["bzip2 inside", "a.writestr('b', b'x' * 100, compress_type=zipfile.ZIP_BZIP2)", "method 12"],
  ])("that has %s", async (_what, program, words) => {
    const { code, message } = await refusal(
      await madeByPython(`with z() as a:\n  zi('good', z=a)\n  ${program}`),
    );
    expect([code, message]).toEqual(["task_failed", expect.stringContaining(words)]);
  });

  it("whose entries overlap, as those of a bomb without nesting do", async () => {
    const archive = await madeByPython(`
with z() as a:
  a.writestr('one', b'0' * 100000)
  i = a.infolist()[0]
  for n in range(20):
    c = zipfile.ZipInfo('copy%d' % n); c.header_offset = i.header_offset; c.CRC = i.CRC; c.compress_size = i.compress_size
    c.file_size = i.file_size; c.compress_type = i.compress_type; a.filelist.append(c); a._didModify = True`);
    expect((await refusal(archive)).message).toContain("entries overlap");
  });

  it("that would unpack to far more than it is", async () => {
    const { message } = await refusal(
      await madeByPython("with z() as a: a.writestr('bomb', b'0' * 5000000)"),
    );
    expect(message).toContain("more than 100 times its size");
  });

  it("that says it is small and goes on and on when it is unpacked", async () => {
    const archive = await madeByPython("with z() as a: a.writestr('bomb', b'0' * 5000000)");
    const directory = archive.indexOf(Buffer.from("PK\u0001\u0002", "latin1"));
    archive.writeUInt32LE(1_000, directory + 24);
    archive.writeUInt32LE(1_000, 22);
    const { code, message } = await refusal(archive);
    expect([code, message]).toEqual(["task_failed", expect.stringContaining("too many bytes")]);
  });

  it.each([
    ["too many entries", "for n in range(101): a.writestr(str(n), b'')", "more than 100 entries"],
    ["too large a file", "a.writestr('big', __import__('os').urandom(10000001))", "more than 10000000 bytes"],
    [
      "too many bytes",
      "for n in range(3): a.writestr(str(n), __import__('os').urandom(9000000))",
      "more than 20000000 bytes",
    ],
  ])("with %s", async (_what, program, words) => {
    expect((await refusal(await madeByPython(`with z() as a:\n  ${program}`))).message).toContain(words);
  });

  it("that is damaged: cut off, with other bytes than its CRC says, with garbage for a directory", async () => {
    const archive = await madeByPython(
      "with z() as a:\n  for n in range(9): a.writestr(str(n), __import__('os').urandom(50000), compress_type=zipfile.ZIP_STORED)",
    );
    const spoilt = Buffer.from(archive);
    spoilt.writeUInt8(spoilt.readUInt8(430_000) ^ 1, 430_000);
    expect((await refusal(spoilt)).message).toContain("CRC");
    expect((await refusal(archive.subarray(0, 400_000))).message).toContain("damaged");
    const garbage = Buffer.from(archive);
    randomBytes(200).copy(garbage, garbage.indexOf(Buffer.from("PK\u0001\u0002", "latin1")));
    expect((await refusal(garbage)).message).toMatch(/damaged|refused/);
  });
});

for (const mode of ["w", "w:gz"]) {
  describeWithProgram("python3", `file_extract keeps nothing of a tar (${mode})`, () => {
    it.each(names)("that has a file named %s", async (name) => {
      const { code, message } = await refusal(
        await madeByPython(`with t('${mode}') as a:\n  ti(a, 'good')\n  ti(a, '${name}')`),
      );
      expect([code, message]).toEqual(["task_failed", expect.stringMatching(/refused|damaged/)]);
    });

    it.each([
      ["a symbolic link", "ti(a, 'link', type=tarfile.SYMTYPE, link='/etc/passwd')", "is a link"],
      ["a hard link", "ti(a, 'link', type=tarfile.LNKTYPE, link='good')", "is a link"],
      ["a character device", "ti(a, 'dev', type=tarfile.CHRTYPE)", "is a device"],
      ["a block device", "ti(a, 'dev', type=tarfile.BLKTYPE)", "is a device"],
      ["a named pipe", "ti(a, 'pipe', type=tarfile.FIFOTYPE)", "is a device"],
      ["two files of one name", "ti(a, 'same'); ti(a, './same')", "two files named"],
      ["a bad path in a pax header", "ti(a, 'x', pax_headers={'path': '../../x'})", "parent folder"],
      [
        "a sparse file",
        "ti(a, 'x', pax_headers={'GNU.sparse.major': '1', 'GNU.sparse.minor': '0'})",
        "sparse",
      ],
      ["too many entries", "[ti(a, str(n), b'') for n in range(101)]", "more than 100 entries"],
      [
        "too many bytes",
        "[ti(a, str(n), __import__('os').urandom(9000000)) for n in range(3)]",
        "more than 20000000 bytes",
      ],
    ])("that has %s", async (_what, program, words) => {
      const { code, message } = await refusal(
        await madeByPython(`with t('${mode}') as a:\n  ti(a, 'good')\n  ${program}`),
      );
      expect([code, message]).toEqual(["task_failed", expect.stringContaining(words)]);
    });

    it("that is cut off", async () => {
      const archive = await madeByPython(
        `with t('${mode}') as a:\n  for n in range(5): ti(a, str(n), __import__('os').urandom(100000))`,
      );
      expect((await refusal(archive.subarray(0, 300_000))).message).toContain("damaged");
    });
  });
}

describeWithProgram("python3", "file_extract keeps nothing of a packed tar", () => {
  it("that would unpack to far more than it is, and stops while it unpacks", async () => {
    const archive = await madeByPython(
      "with t('w:gz') as a:\n  for n in range(60): ti(a, str(n), b'0' * 9000000)",
    );
    const { message } = await refusal(archive);
    expect(message).toContain("more than 100 times its size");
  });

  it("that hides a bomb in a header", async () => {
    const header = await madeByPython("with t('w') as a: ti(a, 'x' * 200)");
    header.write("77777777777", 124);
    let sum = 256;
    for (let at = 0; at < 512; at += 1) sum += at >= 148 && at < 156 ? 0 : header.readUInt8(at);
    header.write(`${sum.toString(8).padStart(6, "0")}\u0000 `, 148);
    const { message } = await refusal(
      gzipSync(Buffer.concat([header.subarray(0, 512), Buffer.alloc(50_000_000)])),
    );
    expect(message).toMatch(/damaged|refused/);
  });
});

describeWithProgram("zip", "file_extract keeps nothing of what zip made", () => {
  it("whose entries are encrypted", async () => {
    const dir = await tempDir();
    await writeFile(path.join(dir, "secret.txt"), "secret");
    const archive = await madeBy(["zip", "-P", "password", "{}", "secret.txt"], dir);
    expect((await refusal(archive)).message).toContain("is encrypted");
  });
});

describe("file_extract does not take", () => {
  it.each([
    ["an empty file", Buffer.alloc(0)],
    ["text", Buffer.from("hello".repeat(1_000))],
    ["noise", randomBytes(100_000)],
    ["a gzip file that is no tar", gzipSync(randomBytes(100_000))],
    ["a short gzip file", gzipSync("hello")],
    ["a gzip file in a gzip file", gzipSync(gzipSync(randomBytes(10_000)))],
  ])("%s", async (_what, bytes) => {
    const { code, message } = await refusal(bytes);
    expect([code, message]).toEqual([
      "invalid_param",
      expect.stringContaining("neither a zip archive nor a tar"),
    ]);
  });
});
