/** Archives made by other programs, the bad ones by Python, which writes whatever it is told. */
import { execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { tempDir } from "../../support/temp-dir.ts";

const prelude = `
import io, sys, struct, tarfile, zipfile, zlib, gzip
out = sys.argv[1]
def z(): return zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED)
def zi(name, mode=0, data=b"x", z=None, system=3):
    i = zipfile.ZipInfo("placeholder"); i.filename = name; i.create_system = system; i.external_attr = mode << 16
    z.writestr(i, data)
def t(mode="w", **more): return tarfile.open(out, mode, **more)
def ti(t, name, data=b"x", type=tarfile.REGTYPE, link="", **more):
    i = tarfile.TarInfo(name); i.type = type; i.linkname = link; i.size = len(data) if type == tarfile.REGTYPE else 0
    for k, v in more.items(): setattr(i, k, v)
    t.addfile(i, io.BytesIO(data) if type == tarfile.REGTYPE else None)
`;

/** What the Python program writes to `out`. */
export async function madeByPython(program: string): Promise<Buffer> {
  const file = path.join(await tempDir(), "archive");
  execFileSync("python3", ["-W", "ignore", "-c", prelude + program, file], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  return readFile(file);
}

/** What a program makes of a folder; `{}` stands for the archive's path. */
export async function madeBy(command: readonly [string, ...string[]], folder: string): Promise<Buffer> {
  const file = path.join(await tempDir(), "archive");
  const [program, ...args] = command;
  execFileSync(
    program,
    args.map((arg) => (arg === "{}" ? file : arg)),
    { cwd: folder, stdio: "ignore" },
  );
  return readFile(file).catch(() => readFile(`${file}.zip`));
}
