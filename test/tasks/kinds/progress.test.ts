/** What the kinds tell of how far they are, while they are in the middle: the last bytes are held back until they have told it twice. */
import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import type { Store } from "../../../src/store/open-store.ts";
import type { JsonValue, TaskProgress } from "../../../src/tasks/engine.ts";
import { zipStream } from "../../../src/tasks/kinds/archive/zip-stream.ts";
import { registerFileKinds } from "../../../src/tasks/kinds/register.ts";
import { contentOf, openTestStore } from "../../support/engine.ts";
import { ended, gate, me } from "../task-store.ts";
import { openKinds, putFile, startKind, until } from "./kinds-store.ts";
import { diskThatWaits, readingFrom } from "./slow-files.ts";
import { serveSource } from "./source-server.ts";

const names = ["a.bin", "b.bin", "c.bin", "d.bin"];
const memberBytes = 1_000_000;
const totalBytes = names.length * memberBytes;

/** Waits for another fraction than nothing and the one before. */
function nextTold(store: Store, taskId: string, before: TaskProgress | null): Promise<TaskProgress> {
  return until(async () => {
    const { status, progress } = await store.tasks.get(me, taskId);
    expect(status).toBe("working");
    return progress?.fraction && progress.fraction !== before?.fraction ? progress : null;
  });
}

const units = ["bytes", "KiB", "MiB"];

/** "1.5 MiB" within the rounding of its last digit. */
function expectSize(text: string | undefined, bytes: number): void {
  const [number, unit = ""] = (text ?? "").split(" ");
  const unitBytes = 1024 ** units.indexOf(unit);
  expect(Math.abs(Number(number) * unitBytes - bytes)).toBeLessThanOrEqual(0.06 * unitBytes);
}

/** `words` has groups `done` and `total`, of bytes. */
function expectTold(told: readonly TaskProgress[], words: RegExp): void {
  let before = 0;
  for (const { message, fraction } of told) {
    expect(fraction).toBeGreaterThan(before);
    expect(fraction).toBeLessThan(1);
    expect(message).toMatch(words);
    const { done, total } = words.exec(message)?.groups ?? {};
    expectSize(done, (fraction ?? 0) * totalBytes);
    expectSize(total, totalBytes);
    before = fraction ?? 0;
  }
}

/** What a task tells twice before the disk gives the last tenth of the `readBytes` that it has to read. */
async function toldTwice(
  kind: string,
  readBytes: number,
  prepare: (store: Store) => Promise<JsonValue>,
): Promise<TaskProgress[]> {
  const store = await openTestStore();
  const args = await prepare(store);
  const { disk, letGo } = diskThatWaits(readBytes * 0.9);
  registerFileKinds(readingFrom(disk, store.tasks), {
    transfers: store.transfers,
    allowImport: [],
    importRoots: [],
  });
  const taskId = await startKind(store, kind, args);
  const first = await nextTold(store, taskId, null);
  const second = await nextTold(store, taskId, first);
  letGo();
  expect((await ended(store.tasks, taskId)).status).toBe("completed");
  return [first, second];
}

describe("while it is in the middle,", () => {
  it("file_import tells how many of the source's bytes it has fetched", async () => {
    const bytes = randomBytes(totalBytes);
    const more = gate();
    const rest = gate();
    const source = await serveSource((_request, response) => {
      response.writeHead(200, { "content-length": totalBytes });
      response.write(bytes.subarray(0, 1_000_000));
      void more.opened.then(() => response.write(bytes.subarray(1_000_000, 3_000_000)));
      void rest.opened.then(() => response.end(bytes.subarray(3_000_000)));
    });
    const store = await openKinds();
    const taskId = await startKind(store, "file_import", { url: source.url });
    const first = await nextTold(store, taskId, null);
    more.open();
    const second = await nextTold(store, taskId, first);
    rest.open();
    expect((await ended(store.tasks, taskId)).status).toBe("completed");
    expectTold([first, second], /^Fetched (?<done>\S+ \S+) of (?<total>\S+ \S+)$/);
  });

  it("file_checksum tells how many of the file's bytes it has read", async () => {
    const told = await toldTwice("file_checksum", totalBytes, async (store) => ({
      handle: await putFile(store, "large", randomBytes(totalBytes)),
      algorithms: ["md5", "blake3"],
    }));
    expectTold(told, /^Read (?<done>\S+ \S+) of (?<total>\S+ \S+)$/);
  });

  it("file_archive tells how many of the files' bytes it has packed", async () => {
    const told = await toldTwice("file_archive", totalBytes, async (store) => {
      const handles: string[] = [];
      for (const name of names) handles.push(await putFile(store, name, randomBytes(memberBytes)));
      return { handles, format: "zip" };
    });
    expectTold(told, /^Packed (?<done>\S+ \S+) of (?<total>\S+ \S+)$/);
  });

  it("file_extract tells how many of the archive's files and bytes it has unpacked", async () => {
    const entries = names.map((name) => ({ handle: name, name, size: memberBytes, modifiedAt: 0 }));
    const zip = zipStream(entries, async () => Readable.from([randomBytes(memberBytes)]));
    // The head of each file and, twice, the directory at the end are read by themselves, with what is around them.
    const readBytes = totalBytes + 6 * 262_144;
    const told = await toldTwice("file_extract", readBytes, async (store) => ({
      handle: await putFile(store, "archive", await contentOf(zip)),
    }));
    expectTold(told, /^Extracted [0-3] of 4 files, (?<done>\S+ \S+) of (?<total>\S+ \S+)$/);
  });
});
