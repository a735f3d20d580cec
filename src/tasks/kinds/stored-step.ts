/** A file stored as a step, like `files.write`, except that its handle is known even where the task is stopped before the step returns. */

import type { TransferEngine } from "../../transfer/engine.ts";
import type { TaskContext } from "../engine.ts";
import { type FileToWrite, writeFile } from "../files.ts";

/** JSON. */
export type StoredFile = {
  readonly handle: string;
  readonly filename: string;
  readonly size: number;
  readonly sha256: string;
};

export async function storeAsStep(
  context: TaskContext,
  transfers: TransferEngine,
  name: string,
  file: FileToWrite,
  onStored: (handle: string) => void,
): Promise<StoredFile> {
  const stored = await context.step(name, async ({ key, attempt, signal }) => {
    const { principal } = context;
    const { handle, filename, size, sha256 } = await writeFile(
      { transfers, principal, key, entries: attempt, signal },
      file,
    );
    onStored(handle);
    return { handle, filename, size, sha256 };
  });
  onStored(stored.handle);
  return stored;
}
