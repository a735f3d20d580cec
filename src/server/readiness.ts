/** Whether this process can take work: its state can be written to and its disk has room. */
import { statfs } from "node:fs/promises";
import { TransferError } from "../errors.ts";

/** A probe that takes longer is no better than one that fails: whoever asks wants to route requests now. */
const patienceMs = 5000;
const retryAfterSeconds = 5;
/** With less than this a disk takes no work, however small the reserve: one group of commits may need as much. */
const fullBelowBytes = 1 << 20;

export interface ReadinessParts {
  /** Goes the whole way to the state store and back, as a write does. */
  readonly probe: () => Promise<void>;
  readonly dataDir: string;
  readonly minFreeBytes: number;
  readonly isStopping: () => boolean;
}

/** Resolves where all is well. @throws TransferError `storage_unavailable` or `storage_full` */
export type Readiness = () => Promise<void>;

export function createReadiness(parts: ReadinessParts): Readiness {
  const check = async (): Promise<void> => {
    await parts.probe();
    const disk = await statfs(parts.dataDir);
    const freeBytes = disk.bavail * disk.bsize;
    if (freeBytes < parts.minFreeBytes)
      throw full("The disk has less free space than LONGSHORE_MIN_FREE_BYTES.");
    if (freeBytes < fullBelowBytes) throw full("The disk is full.");
  };
  return async () => {
    if (parts.isStopping()) throw unavailable("The server is stopping.");
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(unavailable("The stores did not answer in time.")), patienceMs);
    });
    try {
      await Promise.race([check(), late]);
    } catch (thrown) {
      throw thrown instanceof TransferError ? thrown : unavailable("A store cannot be reached.", thrown);
    } finally {
      clearTimeout(timer);
    }
  };
}

const full = (message: string): TransferError =>
  new TransferError("storage_full", message, { retryAfterSeconds });

function unavailable(message: string, cause?: unknown): TransferError {
  return new TransferError("storage_unavailable", message, { retryAfterSeconds, cause });
}
