/** A store whose process takes the kinds of work on files, and small ways to use them. */
import { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { Store } from "../../../src/store/open-store.ts";
import type { JsonValue, Task } from "../../../src/tasks/engine.ts";
import { type FileKindParts, registerFileKinds } from "../../../src/tasks/kinds/register.ts";
import { contentOf, openTestStore, type TestStoreOptions } from "../../support/engine.ts";
import { ended, me } from "../task-store.ts";

export type KindsOptions = TestStoreOptions & { readonly kinds?: Partial<FileKindParts> };

/** Pauses between attempts are short, so that tests of failures are. */
export const impatient = { attempts: 4, firstPauseMs: 5 };

export async function openKinds(options: KindsOptions = {}): Promise<Store> {
  const { kinds, ...rest } = options;
  const store = await openTestStore(rest);
  registerFileKinds(store.tasks, {
    transfers: store.transfers,
    allowImport: ["127.0.0.1"],
    importRoots: [],
    imports: { patience: impatient },
    ...kinds,
  });
  return store;
}

export async function startKind(store: Store, kind: string, args: JsonValue): Promise<string> {
  return (await store.tasks.start(me, { kind, args })).task.taskId;
}

export async function runKind(store: Store, kind: string, args: JsonValue): Promise<Task> {
  return ended(store.tasks, await startKind(store, kind, args));
}

/** The result of a task that must have come to its end. */
export async function resultOf<T = Record<string, unknown>>(
  store: Store,
  kind: string,
  args: JsonValue,
): Promise<T> {
  const task = await runKind(store, kind, args);
  if (task.status !== "completed")
    throw new Error(`${kind} ended ${task.status}: ${JSON.stringify(task.error)}`);
  return task.result as T;
}

export async function putFile(store: Store, filename: string, bytes: Uint8Array | string): Promise<string> {
  const content = typeof bytes === "string" ? Buffer.from(bytes) : bytes;
  const { transfer } = await store.transfers.createWith(
    me,
    {
      filename,
      contentType: null,
      metadata: null,
      sizeBytes: content.byteLength,
      sha256: null,
      idempotencyKey: null,
    },
    {
      offset: 0,
      body: {
        stream: Readable.from(content.byteLength === 0 ? [] : [Buffer.from(content)]),
        lengthBytes: content.byteLength,
      },
    },
  );
  if (transfer.status !== "complete") await store.transfers.status(me, transfer.handle, { waitMs: 10_000 });
  return transfer.handle;
}

export async function bytesOf(store: Store, handle: string): Promise<Buffer> {
  const file = await store.transfers.openOwn(me, handle);
  return contentOf(file.stream(0, file.transfer.sizeBytes));
}

/** Names of all uploads and files there are, unfinished ones included. */
export async function filenames(store: Store): Promise<(string | null)[]> {
  const { transfers } = await store.transfers.list(me, { status: null, limit: 1_000, cursor: null });
  return transfers.map(({ filename }) => filename);
}

/** Waits until something holds. */
export async function until<T>(look: () => Promise<T | null> | T | null, withinMs = 20_000): Promise<T> {
  for (const end = performance.now() + withinMs; performance.now() < end; ) {
    const found = await look();
    if (found !== null) return found;
    await delay(20);
  }
  throw new Error("It did not come about");
}
