/**
 * The files of a task: written under a key of the step and its entry, so that whatever a crash leaves of an earlier entry is found again
 * by its key, taken where it is whole and removed where it is not.
 */
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { TransferError } from "../errors.ts";
import type { Transfer, TransferEngine } from "../transfer/engine.ts";
import type { OpenedFile, WrittenFile } from "./engine.ts";

export type FileContent = string | Uint8Array | Readable | (() => Readable);

export interface FileToWrite {
  readonly filename: string;
  readonly contentType: string | null;
  readonly content: FileContent;
}

interface Writing {
  readonly transfers: TransferEngine;
  readonly principal: string;
  /** Key of the step. */
  readonly key: string;
  /** Times the step was entered, this one included. */
  readonly entries: number;
  readonly signal: AbortSignal;
}

/** A digest that is still being computed is asked for again this often. */
const verifyWaitMs = 10_000;
/** How long a writer that was fenced off may stand in the way of removing what it left. */
const removeTries = 20;
const removePauseMs = 500;

export async function openFile(
  transfers: TransferEngine,
  principal: string,
  handle: string,
): Promise<OpenedFile> {
  const file = await transfers.openOwn(principal, handle);
  const { transfer } = file;
  return {
    transfer,
    stream: (start = 0, end = transfer.sizeBytes) => file.stream(start, end),
    path: () => file.path(),
  };
}

export async function writeFile(writing: Writing, file: FileToWrite): Promise<WrittenFile> {
  for (let entry = 1; entry < writing.entries; entry += 1) {
    const whole = await settleEarlier(writing, file, entry);
    if (whole !== null) {
      discard(file.content);
      return whole;
    }
  }
  const { stream, lengthBytes } = bodyOf(file.content);
  let sourceError: Error | null = null;
  stream.once("error", (error) => (sourceError = error));
  const onAbort = (): void => void stream.destroy(writing.signal.reason);
  writing.signal.addEventListener("abort", onAbort, { once: true });
  if (writing.signal.aborted) onAbort();
  try {
    const { transfer } = await writing.transfers.createWith(
      writing.principal,
      { ...requestOf(file), idempotencyKey: keyOf(writing, writing.entries) },
      { offset: 0, body: { stream, lengthBytes }, final: true },
    );
    return await verified(writing, transfer);
  } catch (error) {
    stream.destroy();
    await settleEarlier(writing, file, writing.entries).catch(() => {});
    throw sourceError ?? error;
  } finally {
    writing.signal.removeEventListener("abort", onAbort);
  }
}

/** A one-shot stream that nobody will read holds what it has opened. */
export function discard(content: FileContent): void {
  if (content instanceof Readable) content.destroy();
}

/** What an entry left: the file where it is whole, else nothing (any more). */
async function settleEarlier(
  writing: Writing,
  file: FileToWrite,
  entry: number,
): Promise<WrittenFile | null> {
  const { transfers, principal } = writing;
  let found: Transfer;
  try {
    found = (await transfers.create(principal, { ...requestOf(file), idempotencyKey: keyOf(writing, entry) }))
      .transfer;
  } catch (error) {
    // The handler names its file otherwise than it did: what it left then is unfinished and expires by itself.
    if (error instanceof TransferError && error.code === "idempotency_conflict") return null;
    throw error;
  }
  if (found.status === "complete" || found.status === "verifying") return verified(writing, found);
  for (let round = 1; ; round += 1) {
    try {
      await transfers.removeOwn(principal, found.handle);
      return null;
    } catch (error) {
      const code = error instanceof TransferError ? error.code : null;
      if (code === "unknown_handle") return null;
      if (code !== "upload_locked" || round >= removeTries) throw error;
    }
    await sleep(removePauseMs);
  }
}

async function verified(writing: Writing, found: Transfer): Promise<WrittenFile> {
  const { transfers, principal, signal } = writing;
  let transfer = found;
  while (transfer.status === "verifying") {
    signal.throwIfAborted();
    transfer = await transfers.status(principal, transfer.handle, { waitMs: verifyWaitMs, signal });
  }
  const { handle, filename, sizeBytes, sha256 } = transfer;
  if (transfer.status !== "complete" || sizeBytes === null || sha256 === null) {
    throw new TransferError("not_active", `The file that was written is ${transfer.status}.`);
  }
  return { handle, filename: filename ?? "", size: sizeBytes, sha256 };
}

/** Size and digest stay out: they would make another request of a retry whose content differs. */
function requestOf(file: FileToWrite) {
  const { filename, contentType } = file;
  return { filename, contentType, metadata: null, sizeBytes: null, sha256: null };
}

/** Of each entry its own: a worker that was fenced off in the middle of an older one cannot write into this one's file. */
function keyOf({ key }: Writing, entry: number): string {
  return `task-file ${key} ${entry}`;
}

function bodyOf(content: FileContent): { stream: Readable; lengthBytes: number | null } {
  if (typeof content === "function") return { stream: inBytes(content()), lengthBytes: null };
  if (content instanceof Readable) return { stream: inBytes(content), lengthBytes: null };
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  return {
    stream: Readable.from(bytes.byteLength === 0 ? [] : [bytes], { objectMode: false }),
    lengthBytes: bytes.byteLength,
  };
}

/** Streams of strings become streams of bytes; streams of bytes stay themselves. */
function inBytes(stream: Readable): Readable {
  if (!stream.readableObjectMode && stream.readableEncoding === null) return stream;
  return Readable.from(encoded(stream), { objectMode: false });
}

async function* encoded(stream: Readable): AsyncGenerator<Uint8Array> {
  for await (const piece of stream) {
    if (typeof piece === "string") yield Buffer.from(piece);
    else if (piece instanceof Uint8Array) yield piece;
    else throw new TypeError("A file's stream gives strings or bytes.");
  }
}
