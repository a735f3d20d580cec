/** What the tests of the state have other processes do; started by `startProcess`, speaks in lines. */
import { once } from "node:events";
import { writeSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openSqliteState } from "../../../src/store/state/sqlite.ts";
import type { TransferState } from "../../../src/transfer/state-store.ts";
import { beginOf, commitOf, created, newBlob, newUpload } from "../../contract/transfer-state/fixture.ts";

const [what = "", dataDir = "", ...more] = process.argv.slice(2);

/** At once and whole, so that what was said before a SIGKILL was said. */
function say(line: string): void {
  let rest = Buffer.from(`${line}\n`);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest));
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) throw error;
      // The reader is behind: there is nothing to do but to wait for it.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}
const untilTold = (): Promise<unknown> => once(process.stdin, "data");

/** Makes uploads and writes to them for ever; says each fact after it was acknowledged. */
async function writeForEver(state: TransferState, owner: string): Promise<void> {
  const caller = async (): Promise<void> => {
    for (;;) {
      const outcome = await state.createUpload(
        newUpload({ begin: { owner, blob: newBlob() }, sizeBytes: 1_000 }),
      );
      if (outcome.kind !== "created" || outcome.segment === null) throw new Error(outcome.kind);
      const lease = { upload: outcome.upload, segment: outcome.segment };
      say(`${lease.upload.handle} 0`);
      for (let length = 100; length <= 1_000; length += 300) {
        await state.commitWrite(commitOf(lease, length, { active: true }));
        say(`${lease.upload.handle} ${length}`);
      }
      await state.releaseWrite(lease.upload.handle, owner, lease.upload.fence);
    }
  };
  await Promise.all(Array.from({ length: 16 }, caller));
}

/** Adds one byte so many times, each time only if the offset is what it has just seen. */
async function increment(state: TransferState, owner: string, handle: string, times: number): Promise<void> {
  let done = 0;
  while (done < times) {
    const view = await state.findUpload(handle);
    if (view === null) throw new Error("Gone");
    const lease = await state.beginWrite(beginOf(view.upload, { owner, offset: view.upload.offset }));
    if (lease.kind !== "ok") continue;
    const outcome = await state.commitWrite(commitOf(lease, lease.segment.length + 1));
    if (outcome.kind === "ok") done += 1;
  }
}

if (what === "lock") {
  const rows = new DatabaseSync(join(dataDir, "state.sqlite"));
  rows.exec("BEGIN IMMEDIATE");
  say("locked");
  await untilTold();
  rows.exec("ROLLBACK");
  say("free");
  process.stdin.destroy();
} else {
  const store = await openSqliteState({ dataDir, fsync: "always", report: (fault) => console.error(fault) });
  const { transfers, liveness } = store;
  if (what === "write") {
    await writeForEver(transfers, liveness.processId);
  } else if (what === "create") {
    await created(transfers);
    say(liveness.processId);
    await store.close();
  } else if (what === "forget") {
    await created(transfers);
    say(liveness.processId);
  } else if (what === "increment") {
    await increment(transfers, liveness.processId, more[0] ?? "", Number(more[1]));
    await store.close();
  } else if (what === "judge") {
    say(String(await liveness.isDead(more[0] ?? "")));
    await store.close();
  } else if (what === "hold") {
    await transfers.registerProcess(liveness.processId, process.pid);
    say(liveness.processId);
    await untilTold();
    await store.close();
    process.stdin.destroy();
  } else {
    throw new Error(`Nobody knows how to '${what}'`);
  }
}
