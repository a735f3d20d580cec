/** SIGKILL in the middle of each kind: another process goes on, and does nothing again that was finished. */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Store } from "../../../src/store/open-store.ts";
import { openTestStore } from "../../support/engine.ts";
import { describeWithProgram } from "../../support/needs-program.ts";
import { ended, me } from "../task-store.ts";
import { bytesOf, filenames, putFile, startKind, until } from "./kinds-store.ts";
import { madeByPython } from "./make-archive.ts";
import { sendFile, serveSource } from "./source-server.ts";

const program = fileURLToPath(new URL("./programs/kinds-process.ts", import.meta.url));
const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** Gives what kills it. Stored files give `readableBytes` there, and then nothing more: its task is in the middle for as long as it lives. */
async function startProcess(dataDir: string, readableBytes?: number): Promise<() => Promise<void>> {
  const args = [
    "--no-warnings",
    program,
    dataDir,
    ...(readableBytes === undefined ? [] : [`${readableBytes}`]),
  ];
  const child: ChildProcess = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const gone = once(child, "close");
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await gone;
  };
  onTestFinished(kill);
  if (child.stdout === null) throw new Error("no output to read");
  await once(child.stdout, "data");
  return kill;
}

/** This process has no handlers: what runs runs in the others. */
const openWatcher = (): Promise<Store> => openTestStore();

async function ownFiles(store: Store) {
  return (await store.transfers.list(me, { status: null, limit: 1_000, cursor: null })).transfers;
}

async function completed(store: Store, taskId: string): Promise<Record<string, unknown>> {
  const task = await ended(store.tasks, taskId);
  expect([task.status, task.error]).toEqual(["completed", null]);
  return task.result as Record<string, unknown>;
}

interface Step {
  readonly name: string;
  readonly state: string;
  /** Times it was begun. */
  readonly entries: number;
  readonly result: string | null;
}

/** A task that was killed, and what was recorded of it then. */
class KilledTask {
  readonly #store: Store;
  readonly #taskId: string;
  readonly #kills: (readonly Step[])[] = [];
  #fraction = 0;

  constructor(store: Store, taskId: string) {
    this.#store = store;
    this.#taskId = taskId;
  }

  /** Waits until it has told that it is further than this, and gives how far. */
  untilToldAbove(fraction: number): Promise<number> {
    return until(async () => {
      const { progress, status } = await this.#store.tasks.get(me, this.#taskId);
      expect(status).toBe("working");
      const told = progress?.fraction ?? 0;
      return told > fraction ? told : null;
    });
  }

  /** Kills the process that runs it, and gives how many steps were in flight. */
  async kill(kill: () => Promise<void>): Promise<number> {
    await kill();
    this.#fraction = (await this.#store.tasks.get(me, this.#taskId)).progress?.fraction ?? 0;
    const steps = this.#steps();
    this.#kills.push(steps);
    return steps.filter(({ state }) => state === "entered").length;
  }

  /**
   * The result of the task, which went on: what was recorded at a kill has not been begun again, what was in flight was once more for each,
   * and it has not told less than before.
   */
  async completed(): Promise<Record<string, unknown>> {
    const result = await completed(this.#store, this.#taskId);
    const { progress } = await this.#store.tasks.get(me, this.#taskId);
    expect(progress?.fraction).toBeGreaterThanOrEqual(this.#fraction);
    const steps = new Map(this.#steps().map((step) => [step.name, step]));
    const inFlight = new Map<string, number>();
    for (const step of this.#kills.flat()) {
      if (step.state === "done") expect(steps.get(step.name)).toEqual(step);
      else inFlight.set(step.name, (inFlight.get(step.name) ?? 0) + 1);
    }
    for (const { name, state, entries } of steps.values()) {
      expect(state).toBe("done");
      expect(entries).toBeLessThanOrEqual(1 + (inFlight.get(name) ?? 0));
    }
    return result;
  }

  #steps(): Step[] {
    const rows = new DatabaseSync(path.join(this.#store.dataDir, "state.sqlite"), { timeout: 5_000 });
    try {
      const query = "SELECT name, state, entries, result FROM step WHERE task_id = ?";
      return rows.prepare(query).all(this.#taskId) as unknown as Step[];
    } finally {
      rows.close();
    }
  }
}

describe("a killed process", () => {
  it("leaves an import that goes on at the acknowledged offset, under the same handle", async () => {
    const bytes = randomBytes(4_000_000);
    const source = await serveSource((request, response, account) =>
      sendFile(request, response, account, {
        bytes,
        pieceBytes: 40_000,
        pauseMs: account.range === null ? 50 : 5,
      }),
    );
    const store = await openWatcher();
    const taskId = await startKind(store, "file_import", {
      url: `${source.url}/big.bin`,
      sha256: sha256(bytes),
    });
    const task = new KilledTask(store, taskId);
    const kill = await startProcess(store.dataDir);
    const fraction = await task.untilToldAbove(0);
    const [file] = await ownFiles(store);
    const { handle, offset } = file ?? { handle: "", offset: 0 };
    expect(offset).toBeGreaterThanOrEqual(fraction * bytes.byteLength);
    expect(await task.kill(kill)).toBe(1);
    await startProcess(store.dataDir);
    expect(await task.completed()).toMatchObject({
      handle,
      size: bytes.byteLength,
      sha256: sha256(bytes),
      filename: "big.bin",
    });
    expect(await filenames(store)).toEqual(["big.bin"]);
    expect(source.requests).toHaveLength(2);
    const from = Number(/^bytes=(\d+)-$/.exec(source.requests[1]?.range ?? "")?.[1]);
    expect(from).toBeGreaterThanOrEqual(offset);
    expect(source.requests[1]?.ifRange).toBe('"v1"');
    expect(source.requests[1]?.sentBytes).toBe(bytes.byteLength - from);
  });

  it("leaves an import that starts over where the source changed while nobody looked", async () => {
    const versions = [randomBytes(4_000_000), randomBytes(300_000)];
    let version = 0;
    const source = await serveSource((request, response, account) =>
      sendFile(request, response, account, {
        bytes: versions[version] ?? Buffer.alloc(0),
        etag: `"v${version}"`,
        pieceBytes: 40_000,
        pauseMs: version === 0 ? 50 : 0,
      }),
    );
    const store = await openWatcher();
    const taskId = await startKind(store, "file_import", { url: `${source.url}/turning.bin` });
    const kill = await startProcess(store.dataDir);
    await until(async () => (await ownFiles(store)).find((file) => file.offset > 0) ?? null);
    await kill();
    version = 1;
    await startProcess(store.dataDir);
    expect(await completed(store, taskId)).toMatchObject({
      size: 300_000,
      sha256: sha256(versions[1] ?? Buffer.alloc(0)),
    });
    expect(await filenames(store)).toEqual(["turning.bin"]);
    expect(source.requests).toHaveLength(2);
  });

  it.each(["zip", "tar.gz"])("leaves an archive that is made once and is the same (%s)", async (format) => {
    const store = await openWatcher();
    const handles: string[] = [];
    for (let n = 0; n < 4; n += 1) handles.push(await putFile(store, `${n}.bin`, randomBytes(1_000_000)));
    const taskId = await startKind(store, "file_archive", { handles, format });
    const task = new KilledTask(store, taskId);
    const kill = await startProcess(store.dataDir, 3_000_000);
    await task.untilToldAbove(0);
    await until(async () => ((await filenames(store)).length > 4 ? true : null));
    expect(await task.kill(kill)).toBe(1);
    await startProcess(store.dataDir);
    const first = await task.completed();
    const second = await completed(store, await startKind(store, "file_archive", { handles, format }));
    expect(second.sha256).toBe(first.sha256);
    expect(await filenames(store)).toHaveLength(6);
  });

  it("leaves a checksum that is computed by another", async () => {
    const store = await openWatcher();
    const bytes = randomBytes(4_000_000);
    const handle = await putFile(store, "big", bytes);
    const taskId = await startKind(store, "file_checksum", {
      handle,
      algorithms: ["sha256", "md5", "blake3", "sha1", "crc32c"],
    });
    const task = new KilledTask(store, taskId);
    const kill = await startProcess(store.dataDir, 3_000_000);
    // Further than the one that begins again will tell at first.
    await task.untilToldAbove(0.2);
    expect(await task.kill(kill)).toBe(1);
    await startProcess(store.dataDir);
    expect(await task.completed()).toMatchObject({
      digests: { sha256: sha256(bytes), md5: createHash("md5").update(bytes).digest("hex") },
    });
  });
});

describeWithProgram("python3", "a process killed while it extracts", () => {
  it.each([
    ["zip", "with z() as a:\n  for n in range(500): a.writestr(f'{n}.txt', f'file {n}')"],
    ["tar.gz", "with t('w:gz') as a:\n  for n in range(500): ti(a, f'{n}.txt', f'file {n}'.encode())"],
  ])(
    "leaves an extraction that keeps what is stored and stores the rest once (%s)",
    async (_format, make) => {
      const store = await openWatcher();
      const archive = await putFile(store, "archive", await madeByPython(make));
      const taskId = await startKind(store, "file_extract", { handle: archive });
      const task = new KilledTask(store, taskId);
      const before = new Map<string | null, string>();
      for (let kills = 1; kills <= 3; kills += 1) {
        const kill = await startProcess(store.dataDir);
        await until(async () => ((await ownFiles(store)).length > kills * 80 ? true : null));
        await task.kill(kill);
        // The files that were being stored at the kill may be done again; what was whole before is not.
        const files = (await ownFiles(store)).filter(({ status }) => status === "complete");
        for (const { filename, handle } of files.slice(0, -8)) {
          expect(before.get(filename) ?? handle).toBe(handle);
          before.set(filename, handle);
        }
      }
      expect(before.size).toBeGreaterThan(200);
      await startProcess(store.dataDir);
      const result = await task.completed();
      expect(result.count).toBe(500);
      const { handle: manifest } = result.manifest as { handle: string };
      const lines = (await bytesOf(store, manifest)).toString().trimEnd().split("\n");
      const files = lines.map((line) => JSON.parse(line) as { path: string; handle: string; sha256: string });
      for (const { path, handle, sha256: digest } of files) {
        expect(before.get(path) ?? handle).toBe(handle);
        expect(digest).toBe(sha256(Buffer.from(`file ${path.replace(".txt", "")}`)));
      }
      // Nothing but the archive, its files and the list of them: no half file, no second one.
      const names = await ownFiles(store);
      expect(names.length).toBe(502);
      expect(new Set(names.map(({ filename }) => filename)).size).toBe(502);
    },
  );
});
