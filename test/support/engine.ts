/** A real engine over a temporary data folder, and small ways to talk to it. */
import { createHash, randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { onTestFinished } from "vitest";
import type { LogEvent } from "../../src/log.ts";
import { openStore, type Store, type StoreOptions } from "../../src/store/open-store.ts";
import type { Body, CreateRequest, TransferLimits } from "../../src/transfer/engine.ts";
import { tempDir } from "./temp-dir.ts";

export const testLimits: TransferLimits = {
  maxFileBytes: 2 ** 40,
  inlineChunkBytes: 262_144,
  inlineFileBytes: 4_194_304,
  uploadTtlMs: 86_400_000,
  fileTtlMs: null,
  downloadTtlMs: 3_600_000,
};

export type TestStoreOptions = Partial<Omit<StoreOptions, "limits">> & {
  readonly limits?: Partial<TransferLimits>;
};

/** Opens a store, closed when the test ends. Events of the log are in `events`. */
export async function openTestStore(
  options: TestStoreOptions = {},
): Promise<Store & { readonly events: LogEvent[] }> {
  const events: LogEvent[] = [];
  const store = await openStore({
    dataDir: options.dataDir ?? (await tempDir()),
    fsync: options.fsync ?? "never",
    quota: options.quota ?? { maxBytes: null, maxFiles: null },
    minFreeBytes: options.minFreeBytes ?? 0,
    log: options.log ?? ((event) => events.push(event)),
    limits: { ...testLimits, ...options.limits },
    tasks: options.tasks ?? {},
  });
  let closed: Promise<void> | null = null;
  const close = () => (closed ??= store.close());
  onTestFinished(close);
  return { ...store, events, close };
}

export function newFile(more: Partial<CreateRequest> = {}): CreateRequest {
  return {
    filename: "a.bin",
    contentType: null,
    metadata: null,
    sizeBytes: null,
    sha256: null,
    idempotencyKey: null,
    ...more,
  };
}

/** A body of these bytes with its length announced. */
export function bodyOf(bytes: Uint8Array, pieceBytes = 65_536): Body {
  return { stream: inPieces(bytes, pieceBytes), lengthBytes: bytes.byteLength };
}

/** A body without an announced length. */
export function chunkedBodyOf(bytes: Uint8Array, pieceBytes = 65_536): Body {
  return { stream: inPieces(bytes, pieceBytes), lengthBytes: null };
}

/** A body that is fed by hand. */
export function openBody(
  lengthBytes: number | null = null,
): Body & { readonly stream: Readable; feed(bytes: Uint8Array): void } {
  const stream = new Readable({ read() {} });
  return { stream, lengthBytes, feed: (bytes) => void stream.push(bytes) };
}

function inPieces(bytes: Uint8Array, pieceBytes: number): Readable {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.byteLength; at += pieceBytes)
    pieces.push(Buffer.from(bytes.subarray(at, at + pieceBytes)));
  return Readable.from(pieces, { objectMode: false });
}

export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

export { randomBytes };

export async function contentOf(stream: Readable): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}
