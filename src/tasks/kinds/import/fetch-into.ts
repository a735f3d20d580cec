/**
 * From a source into one upload, over any number of interruptions: each attempt goes on at the offset that the transfer engine has
 * acknowledged, never at one remembered here.
 */
import { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { TransferError } from "../../../errors.ts";
import type { Transfer, TransferEngine } from "../../../transfer/engine.ts";
import { type Opening, type OpenSource, type Source, type SourceFacts, SourceTrouble } from "./source.ts";

export interface Patience {
  /** Attempts in a row that bring no byte. */
  readonly attempts: number;
  readonly firstPauseMs: number;
}

export const defaultPatience: Patience = { attempts: 8, firstPauseMs: 500 };
const longestPauseMs = 60_000;
const verifyWaitMs = 10_000;
const progressMs = 500;

export interface Fetch {
  readonly transfers: TransferEngine;
  readonly principal: string;
  readonly handle: string;
  readonly source: Source;
  readonly facts: SourceFacts;
  /** A read from the start that was begun before. */
  readonly first: OpenSource | null;
  /** Another part of the same bytes will be told by the digest. */
  readonly isDigestDeclared: boolean;
  readonly patience: Patience;
  readonly signal: AbortSignal;
  readonly onProgress: (bytes: number) => void;
}

export type Fetched =
  | { readonly kind: "complete"; readonly transfer: Transfer }
  /** What is stored belongs to other bytes than the source has now. */
  | { readonly kind: "changed"; readonly source: OpenSource | null };

/** What passes by itself on this side. */
const passing = new Set(["upload_locked", "offset_mismatch", "storage_unavailable"]);

/** @throws TransferError where trying again would not help. */
export async function fetchInto(fetch: Fetch): Promise<Fetched> {
  const { transfers, principal, handle, patience, signal } = fetch;
  let running = fetch.first;
  let failures = 0;
  let best = 0;
  for (;;) {
    try {
      const upload = await settled(fetch, await transfers.status(principal, handle));
      if (upload.status === "complete") return await ended(upload, running);
      // Nobody has worked on it for so long that it may be removed at any moment.
      if (upload.status === "expired") return { kind: "changed", source: null };
      if (upload.offset > best) failures = 0;
      best = Math.max(best, upload.offset);
      const opening = await openAt(fetch, upload.offset, running);
      running = null;
      if (opening.kind === "changed") return opening;
      const outcome = await append(fetch, upload, opening);
      if (outcome.kind === "changed" || outcome.transfer.status === "complete") return outcome;
    } catch (error) {
      running?.close();
      running = null;
      signal.throwIfAborted();
      failures += 1;
      await pauseAfter(error, failures, patience, signal);
    }
  }
}

/** The first read, which tells what there is. */
export async function openSource(
  source: Source,
  patience: Patience,
  signal: AbortSignal,
): Promise<OpenSource> {
  for (let failures = 1; ; failures += 1) {
    try {
      const opening = await source.open(null, signal);
      if (opening.kind === "open") return opening.source;
      throw new SourceTrouble("The source gave nothing.");
    } catch (error) {
      signal.throwIfAborted();
      await pauseAfter(error, failures, patience, signal);
    }
  }
}

async function pauseAfter(
  error: unknown,
  failures: number,
  { attempts, firstPauseMs }: Patience,
  signal: AbortSignal,
): Promise<void> {
  const isOwn = error instanceof TransferError && passing.has(error.code);
  if (!isOwn && !(error instanceof SourceTrouble)) throw error;
  if (failures >= attempts) {
    if (isOwn) throw error;
    throw new TransferError("task_failed", `${error.message} It was tried ${attempts} times in a row.`, {
      recoveryHint: "Check that the source can be reached, then call file_import again.",
    });
  }
  const asked = error instanceof SourceTrouble ? error.retryAfterMs : 0;
  await delay(Math.max(asked, Math.min(longestPauseMs, firstPauseMs * 2 ** (failures - 1))), undefined, {
    signal,
  });
}

async function openAt(
  { source, facts, isDigestDeclared, signal }: Fetch,
  offset: number,
  running: OpenSource | null,
): Promise<Opening> {
  if (running?.start === offset) return { kind: "open", source: running };
  running?.close();
  if (offset === 0) {
    const opening = await source.open(null, signal);
    if (opening.kind !== "open" || isSameSource(opening.source.facts, facts)) return opening;
    return { kind: "changed", source: opening.source };
  }
  // Without a validator nothing says that the rest belongs to what is here, unless a digest will.
  if (facts.validator === null && !isDigestDeclared) return { kind: "changed", source: null };
  return source.open({ offset, facts }, signal);
}

function isSameSource(now: SourceFacts, before: SourceFacts): boolean {
  return now.sizeBytes === before.sizeBytes && now.validator === before.validator;
}

async function append(
  fetch: Fetch,
  upload: Transfer,
  opening: Exclude<Opening, { kind: "changed" }>,
): Promise<Fetched> {
  const { transfers, principal, handle, facts, signal, onProgress } = fetch;
  const running = opening.kind === "open" ? opening.source : null;
  const stop = (): void => running?.close();
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  const ticking = setInterval(() => {
    transfers.status(principal, handle).then(
      ({ offset }) => onProgress(offset),
      () => {},
    );
  }, progressMs);
  try {
    const body =
      running === null
        ? { stream: Readable.from([]), lengthBytes: 0 }
        : { stream: running.stream, lengthBytes: null };
    const { transfer } = await transfers.appendTo(principal, handle, {
      offset: upload.offset,
      body,
      // Only where the source does not tell its size, the end of what it sends is the end of the file.
      final: facts.sizeBytes === null,
    });
    if (transfer.status === "receiving") throw new SourceTrouble("The source sent less than it has.");
    return await ended(await settled(fetch, transfer), running);
  } catch (error) {
    signal.throwIfAborted();
    throw whatItMeans(error, running?.stream ?? null);
  } finally {
    clearInterval(ticking);
    signal.removeEventListener("abort", stop);
    stop();
  }
}

/** The upload once its digest is known. */
async function settled(
  { transfers, principal, handle, signal }: Fetch,
  transfer: Transfer,
): Promise<Transfer> {
  let now = transfer;
  while (now.status === "verifying") {
    signal.throwIfAborted();
    now = await transfers.status(principal, handle, { waitMs: verifyWaitMs, signal });
  }
  if (now.status === "mismatch") throw otherDigest(now.sha256, now.declaredSha256);
  return now;
}

async function ended(transfer: Transfer, running: OpenSource | null): Promise<Fetched> {
  const isSame = running === null || (await running.isSame().catch(() => false));
  return isSame ? { kind: "complete", transfer } : { kind: "changed", source: null };
}

/** The transfer engine speaks to whoever sends the bytes; here that is the source. */
function whatItMeans(error: unknown, stream: Readable | null): unknown {
  if (!(error instanceof TransferError)) return error;
  const brokeOff = stream?.destroyed === true && !stream.readableEnded;
  switch (error.code) {
    case "size_mismatch":
      if (brokeOff) return new SourceTrouble("The connection to the source broke off.");
      return otherSize(error.message.replace(/^The body/, "What the source sent"));
    case "checksum_mismatch":
      return new TransferError("checksum_mismatch", error.message, digestAdvice);
    default:
      return error;
  }
}

const digestAdvice = {
  status: 422,
  retryable: false,
  recoveryHint:
    "Find out whether the URL or the sha256 is the wrong one, then call file_import with the right ones.",
} as const;

function otherDigest(sha256: string | null, declared: string | null): TransferError {
  return new TransferError(
    "checksum_mismatch",
    `The file's sha256 is ${sha256}, not ${declared} as announced.`,
    digestAdvice,
  );
}

export function otherSize(message: string): TransferError {
  return new TransferError("size_mismatch", message, {
    retryable: false,
    recoveryHint: "Call file_import with the right size, or without one.",
  });
}
