/** What a kind leaves behind where it does not come to its end: nothing. */
import { setTimeout as delay } from "node:timers/promises";
import { TransferError } from "../../errors.ts";
import type { TransferEngine } from "../../transfer/engine.ts";
import { type JsonValue, type TaskContext, type TaskKind, TaskStopped } from "../engine.ts";

const removalsAtOnce = 8;
const tries = 20;
const pauseMs = 500;

/**
 * Whether a handler that threw has come to the end of its task. Where it has not (the process stops, or another has taken the task over),
 * what it made so far is the start of the next run.
 */
export function isOver({ signal }: TaskContext): boolean {
  if (!signal.aborted) return true;
  const { reason } = signal;
  return reason instanceof TaskStopped && (reason.reason === "cancel" || reason.reason === "deadline");
}

/** Removes what is still there. Never rejects: what cannot be removed now is unfinished and expires, or stays the caller's. */
export async function removeFiles(
  transfers: TransferEngine,
  principal: string,
  handles: Iterable<string>,
): Promise<void> {
  const left = [...new Set(handles)];
  const remover = async (): Promise<void> => {
    for (let handle = left.pop(); handle !== undefined; handle = left.pop()) {
      await removeFile(transfers, principal, handle).catch(() => {});
    }
  };
  await Promise.all(Array.from({ length: removalsAtOnce }, remover));
}

/** For kinds whose steps tell handles of nothing but what they have made, by themselves or as the member `handle`. */
export function discardFiles(transfers: TransferEngine): NonNullable<TaskKind["discard"]> {
  return (principal, results) => removeFiles(transfers, principal, results.flatMap(handlesIn));
}

function handlesIn(result: JsonValue): string[] {
  const handle = typeof result === "object" && result !== null && "handle" in result ? result.handle : result;
  return typeof handle === "string" ? [handle] : [];
}

/** A writer that ended a moment ago may still stand in the way. */
export async function removeFile(
  transfers: TransferEngine,
  principal: string,
  handle: string,
): Promise<void> {
  for (let round = 1; ; round += 1) {
    try {
      return await transfers.removeOwn(principal, handle);
    } catch (error) {
      const code = error instanceof TransferError ? error.code : null;
      if (code === "unknown_handle") return;
      if ((code !== "upload_locked" && code !== "storage_unavailable") || round === tries) throw error;
    }
    await delay(pauseMs);
  }
}
