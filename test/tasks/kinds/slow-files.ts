/** Tasks that read stored files as from a disk which gives its bytes no sooner than a test wants. */
import { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { OpenedFile, TaskContext, TaskEngine, TaskKind } from "../../../src/tasks/engine.ts";

const pieceBytes = 16_384;
const pieceMs = 5;

/** Resolves once the disk gives the next piece, which has this many bytes. */
export type Disk = (bytes: number) => Promise<void>;

/** The same engine, for kinds to be registered that read from this disk. */
export function readingFrom(disk: Disk, tasks: TaskEngine): TaskEngine {
  const register = (kind: TaskKind): void =>
    tasks.register({ ...kind, handler: (args, context) => kind.handler(args, slowly(context, disk)) });
  return Object.assign(Object.create(tasks), { register });
}

/** Gives a small piece every few milliseconds, and no more after this many bytes. */
export function diskThatHangs(afterBytes: number): Disk {
  return diskThatWaits(afterBytes).disk;
}

/** The same, and the rest once it is let. */
export function diskThatWaits(afterBytes: number): { readonly disk: Disk; letGo(): void } {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  let givenBytes = 0;
  let before = Promise.resolve();
  let isOpen = false;
  const give = async (bytes: number): Promise<void> => {
    givenBytes += bytes;
    if (!isOpen) await (givenBytes > afterBytes ? opened : Promise.race([delay(pieceMs), opened]));
  };
  return {
    disk: (bytes) => (before = before.then(() => give(bytes))),
    letGo: () => {
      isOpen = true;
      open();
    },
  };
}

function slowly(context: TaskContext, disk: Disk): TaskContext {
  const open = async (handle: string): Promise<OpenedFile> => {
    const file = await context.files.open(handle);
    const stream = (start?: number, end?: number): Readable =>
      Readable.from(pieces(file.stream(start, end), disk), { objectMode: false, highWaterMark: pieceBytes });
    return { ...file, stream };
  };
  return { ...context, files: { ...context.files, open } };
}

async function* pieces(stream: Readable, disk: Disk): AsyncGenerator<Buffer> {
  for await (const piece of stream as AsyncIterable<Buffer>) {
    for (let at = 0; at < piece.byteLength; at += pieceBytes) {
      const part = piece.subarray(at, at + pieceBytes);
      await disk(part.byteLength);
      yield part;
    }
  }
}
