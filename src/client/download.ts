/** Downloads with Range after each break, and the digest of the whole compared in the end. */
import { type Platform, type RunningHash, sha256In } from "./digest.ts";
import { isTemporary, lostConnection, Patience, type RetryOptions, send } from "./retry.ts";
import { failureOf, TransferFailure, wholeNumber } from "./transfer-failure.ts";
import type { Progress } from "./upload.ts";

/**
 * What a download goes by.
 *
 * @example
 * const options: DownloadOptions = { onProgress: ({ bytes }) => show(bytes) };
 */
export interface DownloadOptions extends RetryOptions {
  /** Called as bytes are written. */
  readonly onProgress?: (progress: Progress) => void;
}

/**
 * What came, its digest compared with the one that the server tells.
 *
 * @example
 * const { filename, size, sha256 }: Downloaded = await download(url, (bytes) => file.write(bytes));
 */
export interface Downloaded {
  /** As the URL names it; null where it does not. */
  readonly filename: string | null;
  readonly contentType: string | null;
  readonly size: number;
  /** Lower-case hex. */
  readonly sha256: string;
}

/**
 * Takes the bytes one piece after the other; the next comes when it has returned. The array is its own to keep.
 *
 * @example
 * const write: WriteBytes = (bytes, offset) => view.set(bytes, offset);
 */
export type WriteBytes = (bytes: Uint8Array<ArrayBuffer>, offset: number) => void | Promise<void>;

/** What an earlier download has left: it is hashed and not asked for again. */
export interface Beginning {
  readonly sizeBytes: number;
  pieces(): AsyncIterable<Uint8Array>;
}

export async function downloadWith(
  platform: Platform,
  url: string | URL,
  write: WriteBytes,
  options: DownloadOptions,
  beginning: Beginning | null = null,
): Promise<Downloaded> {
  const hash = await platform.newSha256();
  if (beginning !== null) for await (const piece of beginning.pieces()) hash.update(piece);
  return new Download(String(url), write, options, hash, beginning?.sizeBytes ?? 0).run();
}

interface FileFacts {
  readonly etag: string | null;
  readonly sizeBytes: number | null;
  readonly sha256: string | null;
  readonly contentType: string | null;
}

class Download {
  readonly #url: string;
  readonly #write: WriteBytes;
  readonly #options: DownloadOptions;
  readonly #patience: Patience;
  readonly #hash: RunningHash;
  #offset: number;
  #facts: FileFacts | null = null;

  constructor(url: string, write: WriteBytes, options: DownloadOptions, hash: RunningHash, offset: number) {
    this.#url = url;
    this.#write = write;
    this.#options = options;
    this.#patience = new Patience(options);
    this.#hash = hash;
    this.#offset = offset;
  }

  async run(): Promise<Downloaded> {
    // What it is must be known before a range of it can be asked for.
    if (this.#offset > 0) await this.#patiently(() => this.#ask("HEAD"));
    while (this.#facts === null || this.#offset !== (this.#facts.sizeBytes ?? Number.NaN))
      await this.#patiently(async () => this.#take(await this.#ask("GET")));
    const { sha256: told, contentType } = this.#facts;
    const sha256 = this.#hash.digest();
    if (told !== null && told !== sha256)
      throw new TransferFailure(
        "checksum_mismatch",
        `The file has sha256 ${told}, and the bytes that are here have ${sha256}.`,
        { recoveryHint: "Delete what is here and download again from the start." },
      );
    return { filename: filenameIn(this.#url), contentType, size: this.#offset, sha256 };
  }

  async #patiently(work: () => Promise<unknown>): Promise<void> {
    for (;;) {
      const before = this.#offset;
      try {
        await work();
        return;
      } catch (error) {
        if (!(error instanceof TransferFailure)) throw error;
        // A file whose digest is still being computed says when to come again.
        if (!isTemporary(error) && error.retryAfterMs === null) throw error;
        if (this.#offset > before) this.#patience.progressed();
        await this.#patience.afterFailure(error);
      }
    }
  }

  async #ask(method: "GET" | "HEAD"): Promise<Response> {
    const etag = this.#facts?.etag ?? null;
    const headers: Record<string, string> =
      this.#offset === 0 || method === "HEAD"
        ? {}
        : { Range: `bytes=${this.#offset}-`, ...(etag !== null && { "If-Range": etag }) };
    const response = await send(this.#url, { method, headers }, this.#options);
    if (!response.ok) throw await failureOf(response);
    const facts = factsIn(response);
    if (this.#facts !== null && this.#facts.etag !== facts.etag) throw otherFile();
    this.#facts ??= facts;
    const { sizeBytes } = this.#facts;
    if (sizeBytes !== null && this.#offset > sizeBytes) throw otherFile();
    return response;
  }

  async #take(response: Response): Promise<void> {
    const { body } = response;
    // A whole file in answer to a range: it is not the one of the first bytes any more.
    if (this.#offset > 0 && response.status !== 206) {
      await body?.cancel();
      throw otherFile();
    }
    const reader = body?.getReader();
    try {
      for (;;) {
        const { done, value } = (await reader?.read().catch(this.#onLost)) ?? {
          done: true,
          value: undefined,
        };
        if (done) break;
        this.#hash.update(value);
        const piece = new Uint8Array(value);
        await this.#write(piece, this.#offset);
        this.#offset += piece.length;
        this.#options.onProgress?.({ bytes: this.#offset, sizeBytes: this.#facts?.sizeBytes ?? null });
      }
    } finally {
      // Where the writer failed, nobody wants the rest.
      await reader?.cancel().catch(() => {});
    }
    const { sizeBytes = null } = this.#facts ?? {};
    if (sizeBytes === null) this.#facts = { ...factsIn(response), sizeBytes: this.#offset };
    else if (this.#offset < sizeBytes) throw lostConnection(new Error("the body ended early"));
  }

  readonly #onLost = (error: unknown): never => {
    this.#options.signal?.throwIfAborted();
    throw lostConnection(error);
  };
}

function factsIn({ headers, status }: Response): FileFacts {
  const range = /\/(\d+)$/.exec(headers.get("content-range") ?? "")?.[1] ?? null;
  return {
    etag: headers.get("etag"),
    sizeBytes: wholeNumber(status === 206 ? range : headers.get("content-length")),
    sha256: sha256In(headers.get("repr-digest")),
    contentType: headers.get("content-type"),
  };
}

/** The last part of the path, as far as it is one: Longshore puts the name there, after the ticket. */
function filenameIn(url: string): string | null {
  const name = /\/d\/[^/]+\/([^/]+)$/.exec(new URL(url).pathname)?.[1];
  try {
    return name === undefined ? null : decodeURIComponent(name);
  } catch {
    return null;
  }
}

function otherFile(): TransferFailure {
  return new TransferFailure(
    "precondition_failed",
    "The bytes that are here are not the beginning of this file.",
    {
      recoveryHint: "Delete what is here and download again from the start.",
    },
  );
}

/** `downloadWith` into memory. */
export async function downloadBlobWith(
  platform: Platform,
  url: string | URL,
  options: DownloadOptions,
): Promise<Downloaded & { readonly blob: Blob }> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  const downloaded = await downloadWith(platform, url, (bytes) => void pieces.push(bytes), options);
  return { ...downloaded, blob: new Blob(pieces, { type: downloaded.contentType ?? "" }) };
}
