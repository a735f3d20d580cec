/**
 * The order of the system calls behind an answer: bytes, their sync and the sync of the folder that names them, then the record and its
 * sync, then the answer. It is what makes an answer true after a power cut, seen without cutting any power.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { describeWithProgram } from "../support/needs-program.ts";
import { tusCreate, tusCreated, tusPatch } from "../support/plain-http.ts";
import { Sample } from "../support/sample.ts";
import { type ServerProcess, startServer } from "../support/server-process.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitUntil } from "../support/wait-until.ts";

interface Call {
  readonly name: string;
  /** What the first argument stands for: a path, or a socket. */
  readonly target: string;
  readonly text: string;
  /** Places in the order of all beginnings and ends. */
  readonly began: number;
  readonly ended: number;
}

/** Calls of all threads. One that others came in between is told in two lines, of which the second has its end. */
function callsOf(trace: string): Call[] {
  const calls: Call[] = [];
  const waiting = new Map<string, Omit<Call, "ended">>();
  for (const [at, line] of trace.split("\n").entries()) {
    const begun = /^(\d+) +(\w+)\(\d+<([^>]*)>(.*)$/.exec(line);
    const resumed = /^(\d+) +<\.\.\. (\w+) resumed>/.exec(line);
    if (begun !== null) {
      const [, thread = "", name = "", target = "", text = ""] = begun;
      const call = { name, target, text, began: at };
      if (text.endsWith("<unfinished ...>")) waiting.set(thread, call);
      else calls.push({ ...call, ended: at });
    } else if (resumed !== null) {
      const call = waiting.get(resumed[1] ?? "");
      if (call === undefined || call.name !== resumed[2]) continue;
      waiting.delete(resumed[1] ?? "");
      calls.push({ ...call, ended: at });
    }
  }
  return calls.toSorted((one, other) => one.began - other.began);
}

async function traced(work: (server: ServerProcess) => Promise<void>): Promise<Call[]> {
  const folder = await tempDir();
  const trace = path.join(folder, "trace");
  const followed = "write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,sendto,sendmsg";
  const server = await startServer({
    dataDir: path.join(folder, "data"),
    wrapper: ["strace", "-f", "--seccomp-bpf", "-y", "-s", "48", "-e", `trace=${followed}`, "-o", trace],
  });
  try {
    await work(server);
    // The server itself: what traces it ends with it.
    process.kill(server.pid, "SIGTERM");
    await waitUntil(() => !server.isRunning());
  } finally {
    if (server.isRunning()) process.kill(server.pid, "SIGKILL");
    await server.kill();
  }
  return callsOf(readFileSync(trace, "utf8"));
}

const isWrite = ({ name }: Call): boolean => /^(?:pwrite|write)/.test(name);
const isSync = ({ name }: Call): boolean => /^f(?:data)?sync$/.test(name);
const isBlob = ({ target }: Call): boolean => /\/blobs\/\w\/./.test(target);
const isBlobFolder = ({ target }: Call): boolean => /\/blobs\/\w$/.test(target);
const isLog = ({ target }: Call): boolean => target.endsWith("/state.sqlite-wal");

/** The calls up to the answer that `find` names, from the answer before it on. */
function behind(calls: readonly Call[], status: number, nth = 0): { before: readonly Call[]; answer: Call } {
  const answers = calls.filter(
    ({ target, text }) => /^(?:socket|TCP)/.test(target) && text.includes('"HTTP/1.1 '),
  );
  const all = answers.filter(({ text }) => text.includes(`"HTTP/1.1 ${status} `));
  const answer = all[nth];
  if (answer === undefined) throw new Error(`no answer ${status} among ${JSON.stringify(answers)}`);
  const previous = answers[answers.indexOf(answer) - 1]?.began ?? -1;
  return { before: calls.filter(({ began }) => began > previous && began < answer.began), answer };
}

/** The record of the bytes: the last write to the log, and the sync that ended before the answer began. */
function expectRecorded(before: readonly Call[], answer: Call): Call {
  const written = before.filter((call) => isLog(call) && isWrite(call)).at(-1);
  const synced = before.filter((call) => isLog(call) && isSync(call)).at(-1);
  if (written === undefined || synced === undefined) throw new Error("the record was not written");
  expect(written.ended).toBeLessThan(synced.began);
  expect(synced.ended).toBeLessThan(answer.began);
  return before.filter((call) => isLog(call) && isWrite(call) && call.began < synced.began).at(-1) ?? written;
}

describeWithProgram("strace", "the system calls behind an answer", () => {
  test("are bytes, their sync, the record, its sync and then the answer, for a file in one request and for a PATCH", async () => {
    const sample = new Sample("traced", 300_000);
    const calls = await traced(async ({ url }) => {
      const whole = await tusCreate(url, sample.sizeBytes, {}, sample.bytes());
      expect(whole.headers["longshore-status"]).toBe("complete");
      const target = await tusCreated(url, sample.sizeBytes);
      expect((await tusPatch(target, 0, sample.bytes(0, 100_000))).status).toBe(204);
      expect((await tusPatch(target, 100_000, sample.bytes(100_000))).status).toBe(204);
    });
    const answers = [
      { ...behind(calls, 201, 0), newName: true },
      { ...behind(calls, 204, 0), newName: true },
      { ...behind(calls, 204, 1), newName: false },
    ];
    for (const { before, answer, newName } of answers) {
      const bytes = before.filter((call) => isBlob(call) && isWrite(call));
      const synced = before.filter((call) => isBlob(call) && isSync(call)).at(-1);
      const named = before.filter((call) => isBlobFolder(call) && isSync(call));
      if (synced === undefined) throw new Error("the bytes were not synced");
      expect(bytes.length).toBeGreaterThan(0);
      for (const { ended } of bytes) expect(ended).toBeLessThan(synced.began);
      const record = expectRecorded(before, answer);
      expect(synced.ended).toBeLessThan(record.began);
      expect(named).toHaveLength(newName ? 1 : 0);
      for (const { ended } of named) expect(ended).toBeLessThan(record.began);
    }
    // An upload that is only created has a record and no bytes.
    const created = behind(calls, 201, 1);
    expectRecorded(created.before, created.answer);
    expect(created.before.filter(isBlob)).toEqual([]);
  });
});
