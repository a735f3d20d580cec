/**
 * What a power cut leaves on a disk that had confirmed more than it did: files shorter than their records, a log that ends in the
 * middle of a commit. It is found at the next start, told, and the truth is what counts from then on.
 */
import { cpSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { tornLogBytes } from "../../src/store/state/sqlite/torn-log.ts";
import { program } from "../support/client-programs.ts";
import { connect, facts, failure } from "../support/mcp-clients.ts";
import {
  answerOrNone,
  http,
  offsetOf,
  open,
  patchHeaders,
  problem,
  tusCreate,
  tusCreated,
  tusHead,
  tusPatch,
} from "../support/plain-http.ts";
import { Sample } from "../support/sample.ts";
import { seeded } from "../support/seeded.ts";
import { binary, type ServerProcess, startServer } from "../support/server-process.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitUntil } from "../support/wait-until.ts";

const reprDigest = (sample: Sample): string =>
  `sha-256=:${Buffer.from(sample.sha256, "hex").toString("base64")}:`;

async function started(dataDir?: string): Promise<ServerProcess> {
  const server = await startServer({ dataDir: dataDir ?? path.join(await tempDir(), "data") });
  onTestFinished(() => server.kill());
  return server;
}

/** The files of an upload, in the order they were made; a name begins with what is random in the handle. */
function blobsOf(dataDir: string, handle: string): string[] {
  const root = path.join(dataDir, "blobs");
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => path.basename(name).startsWith(handle.slice("fh_".length)))
    .map((name) => path.join(root, name))
    .toSorted((one, other) => statSync(one).birthtimeMs - statSync(other).birthtimeMs);
}

/** An upload with this much acknowledged, and the server killed: its writer was idle, or in the middle of a PATCH. */
async function killedAt(sample: Sample, offset: number, writer: "idle" | "writing") {
  const server = await started();
  const created = await tusCreate(server.url, sample.sizeBytes);
  const url = String(created.headers.location);
  const handle = String(created.headers["longshore-handle"]);
  if (writer === "idle") {
    expect((await tusPatch(url, 0, sample.bytes(0, offset))).status).toBe(204);
  } else {
    const client = await connect("a client of 2026-07-28", server.mcpUrl);
    const request = open("PATCH", url, patchHeaders(0, sample.sizeBytes));
    await request.write(sample.bytes(0, offset));
    await waitUntil(async () => (await facts(client, "upload_status", { handle })).offset === offset);
  }
  await server.kill();
  return { target: new URL(url).pathname, handle, dataDir: server.dataDir };
}

async function expectGoesOn(server: ServerProcess, target: string, sample: Sample, offset: number) {
  const head = await tusHead(server.url + target);
  expect([head.status, offsetOf(head)]).toEqual([200, offset]);
  const rest = await tusPatch(server.url + target, offset, sample.bytes(offset));
  expect([rest.status, rest.headers["repr-digest"]]).toEqual([204, reprDigest(sample)]);
}

test.each(["idle", "writing"] as const)(
  "an upload whose file is shorter than its record goes back to what is there, with its writer %s when the power went",
  async (writer) => {
    const sample = new Sample(`torn ${writer}`, 900_000);
    const { target, handle, dataDir } = await killedAt(sample, 500_000, writer);
    truncateSync(blobsOf(dataDir, handle)[0] ?? "", 123_456);
    const server = await started(dataDir);
    expect(server.log()).toMatch(
      new RegExp(`"event":"upload.torn","handle":"${handle}","offset":123456,"missingBytes":376544`),
    );
    expect(server.log()).toMatch(
      writer === "idle"
        ? /"store.recovered","deadProcesses":1,"adoptedUploads":0,"tornUploads":1/
        : /"store.recovered","deadProcesses":1,"adoptedUploads":1,"tornUploads":0/,
    );
    await expectGoesOn(server, target, sample, 123_456);
  },
);

test("an upload of several files goes back to the first that is short, and one without any to its start", async () => {
  const sample = new Sample("several", 900_000);
  const server = await started();
  const gone = new Sample("gone", 1000);
  const goneUrl = await tusCreated(server.url, gone.sizeBytes);
  const { headers } = await tusPatch(goneUrl, 0, gone.bytes(0, 600));
  const created = await tusCreate(server.url, sample.sizeBytes);
  const url = String(created.headers.location);
  const handle = String(created.headers["longshore-handle"]);
  // A wrong checksum ends the file; the next piece gets another.
  for (const [start, end] of [
    [0, 100_000],
    [100_000, 200_000],
    [200_000, 300_000],
  ] as const) {
    const wrong = { "Upload-Checksum": `sha1 ${Buffer.alloc(20).toString("base64")}` };
    if (start > 0) expect((await tusPatch(url, start, "wrong", wrong)).status).toBe(460);
    expect((await tusPatch(url, start, sample.bytes(start, end))).status).toBe(204);
  }
  await server.kill();
  const files = blobsOf(server.dataDir, handle).filter((file) => statSync(file).size >= 100_000);
  expect(files).toHaveLength(3);
  const holding = (start: number) =>
    files.find((file) =>
      readFileSync(file)
        .subarray(0, 100_000)
        .equals(sample.bytes(start, start + 100_000)),
    ) ?? "";
  truncateSync(holding(100_000), 50_000);
  for (const file of blobsOf(server.dataDir, String(headers["longshore-handle"]))) rmSync(file);
  const again = await started(server.dataDir);
  expect(again.log()).toContain('"tornUploads":2');
  await expectGoesOn(again, new URL(url).pathname, sample, 150_000);
  await expectGoesOn(again, new URL(goneUrl).pathname, gone, 0);
});

test("an upload that was being verified without all of its bytes takes them again", async () => {
  const sample = new Sample("verified", 400_000);
  const server = await started();
  const stored = await tusCreate(server.url, sample.sizeBytes, {}, sample.bytes());
  const handle = String(stored.headers["longshore-handle"]);
  await server.kill();
  // As it stands for a moment behind the last byte, in large files for longer.
  const rows = new DatabaseSync(path.join(server.dataDir, "state.sqlite"));
  rows
    .prepare("UPDATE upload SET status = 'verifying', sha256 = NULL, completed_at = NULL WHERE handle = ?")
    .run(handle);
  rows.close();
  truncateSync(blobsOf(server.dataDir, handle)[0] ?? "", 300_000);
  const again = await started(server.dataDir);
  expect(again.log()).toContain('"event":"upload.torn"');
  await expectGoesOn(again, new URL(String(stored.headers.location)).pathname, sample, 300_000);
});

test("a stored file that is missing or cut is named by verify, and its download is an error or breaks off, never other bytes", async () => {
  const server = await started();
  const client = await connect("a client of 2025-11-25", server.mcpUrl);
  const samples = ["whole", "missing", "cut"].map((name) => new Sample(name, 2_000_000));
  const files = await Promise.all(
    samples.map(async (sample) => {
      const stored = await tusCreate(server.url, sample.sizeBytes, {}, sample.bytes());
      const handle = String(stored.headers["longshore-handle"]);
      const { url } = await facts(client, "file_download", { handle });
      return { sample, handle, url: String(url), blob: blobsOf(server.dataDir, handle)[0] ?? "" };
    }),
  );
  const [whole, missing, cut] = files;
  if (whole === undefined || missing === undefined || cut === undefined) throw new Error("not stored");
  rmSync(missing.blob);
  truncateSync(cut.blob, 1_500_000);

  const { status, stdout } = await program(process.execPath, [
    binary,
    "verify",
    "--json",
    "--data-dir",
    server.dataDir,
  ]);
  expect(status).toBe(1);
  const report = JSON.parse(stdout) as { checkedFiles: number; faults: { handle: string; fault: string }[] };
  expect(report.checkedFiles).toBe(3);
  expect(report.faults.map(({ handle, fault }) => [handle, fault]).toSorted()).toEqual(
    [
      [missing.handle, "missing"],
      [cut.handle, "missing"],
    ].toSorted(),
  );

  expect((await http("GET", whole.url)).body.equals(whole.sample.bytes())).toBe(true);
  const gone = await http("GET", missing.url);
  expect([gone.status, problem(gone).code]).toEqual([503, "storage_unavailable"]);
  expect(gone.body.toString()).not.toMatch(/ENOENT|blobs/);
  expect(await failure(client, "file_read", { handle: missing.handle })).toMatchObject({
    code: "storage_unavailable",
  });
  // The length was promised before the end was looked at: breaking off is all that is left.
  expect(await answerOrNone(http("GET", cut.url))).toBeNull();
  const there = await http("GET", cut.url, { headers: { Range: "bytes=0-1499999" } });
  expect(there.body.equals(cut.sample.bytes(0, 1_500_000))).toBe(true);
  const notThere = await http("GET", cut.url, { headers: { Range: "bytes=1500000-1999999" } });
  expect([notThere.status, problem(notThere).code]).toEqual([503, "storage_unavailable"]);
});

/** A killed server's folder, with what it had acknowledged, in the order of the answers. */
async function killedWithFiles(count: number) {
  const server = await started();
  const all: { target: string; sample: Sample }[] = [];
  for (let index = 0; index < count; index += 1) {
    const sample = new Sample(`file ${index}`, 3000 + index);
    const stored = await tusCreate(server.url, sample.sizeBytes, {}, sample.bytes());
    all.push({ target: new URL(String(stored.headers.location)).pathname, sample });
  }
  await server.kill();
  const dataDir = server.dataDir;
  const log = path.join(dataDir, "state.sqlite-wal");
  expect(tornLogBytes(log)).toBe(0);
  return { dataDir, log, all };
}

test("a log with rubbish behind its last commit is opened without it, with everything that was acknowledged", async () => {
  const chance = seeded();
  const { dataDir, log, all } = await killedWithFiles(5);
  writeFileSync(log, chance.bytes(10_000), { flag: "a" });
  const server = await started(dataDir);
  expect(server.log()).toContain('"event":"store.log_torn","bytes":10000');
  for (const { target, sample } of all)
    expect((await tusHead(server.url + target)).headers["repr-digest"]).toBe(reprDigest(sample));
});

test("a log that the disk has lost in part is opened up to the last whole commit: what is known then is true, and goes on", async () => {
  const { dataDir, log, all } = await killedWithFiles(30);
  const { size } = statSync(log);
  truncateSync(log, Math.floor(size / 2));
  const server = await started(dataDir);
  expect(server.log()).toContain('"event":"store.log_torn"');
  let complete = 0;
  let forgotten = 0;
  for (const { target, sample } of all) {
    const head = await tusHead(server.url + target);
    if (head.status === 404) forgotten += 1;
    else if (head.headers["longshore-status"] === "complete") {
      complete += 1;
      expect(head.headers["repr-digest"]).toBe(reprDigest(sample));
      // History is cut at one point: nothing is lost before something that is there.
      expect(forgotten).toBe(0);
    } else await expectGoesOn(server, target, sample, 0);
  }
  expect(complete).toBeGreaterThan(3);
  expect(forgotten).toBeGreaterThan(3);
  const sample = new Sample("afterwards", 100_000);
  const stored = await tusCreate(server.url, sample.sizeBytes, {}, sample.bytes());
  expect(stored.headers["repr-digest"]).toBe(reprDigest(sample));
  const { status } = await program(process.execPath, [binary, "verify", "--data-dir", dataDir]);
  expect(status).toBe(0);
});

test("the torn part of a log is what SQLite leaves out, wherever it is cut or spoiled", async () => {
  const chance = seeded();
  const { dataDir, log: source } = await killedWithFiles(8);
  const folder = await tempDir();
  const name = path.join(folder, "state.sqlite");
  const whole = readFileSync(source);
  const frameBytes = 24 + whole.readUInt32BE(8);
  const compare = (what: string, log: Buffer): void => {
    cpSync(path.join(dataDir, "state.sqlite"), name);
    writeFileSync(`${name}-wal`, log);
    const torn = tornLogBytes(`${name}-wal`);
    const database = new DatabaseSync(name);
    const frames = Number(database.prepare("PRAGMA wal_checkpoint").get()?.log);
    const kept = frames <= 0 ? 0 : 32 + frames * frameBytes;
    // A log of nothing but its header holds no commit, and nothing is left out of it.
    const expected = kept === 0 && torn === log.length - 32 ? log.length - 32 : log.length - kept;
    expect([what, torn]).toEqual([what, expected]);
    database.close();
    for (const file of readdirSync(folder)) rmSync(path.join(folder, file));
  };
  for (let round = 0; round < 30; round += 1) {
    compare(`cut, round ${round}`, Buffer.from(whole.subarray(0, chance.between(0, whole.length))));
    const spoiled = Buffer.from(whole);
    spoiled.writeUInt8(
      spoiled.readUInt8(chance.between(0, whole.length)) ^ 1,
      chance.between(0, whole.length),
    );
    compare(`spoiled, round ${round}`, spoiled);
  }
  // Each byte of the header of one frame in the middle: a spoiled salt must not pass for that of an earlier use of the log.
  const frame = 32 + frameBytes * Math.floor((whole.length - 32) / frameBytes / 2);
  for (let at = frame; at < frame + 24; at += 1) {
    for (const bit of [1, 0x80]) {
      const spoiled = Buffer.from(whole);
      spoiled.writeUInt8(spoiled.readUInt8(at) ^ bit, at);
      compare(`byte ${at - frame} of a header, bit ${bit}`, spoiled);
    }
  }
});
