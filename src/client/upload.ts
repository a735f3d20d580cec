/** Uploads over tus 1.0: the offset is asked for, the rest is sent, and what the server has stored is compared with what was sent. */
import type { ByteSource } from "./byte-source.ts";
import { type Platform, sha256In } from "./digest.ts";
import { isTemporary, Patience, type RetryOptions, send, sendPatiently } from "./retry.ts";
import { failureOf, TransferFailure, wholeNumber } from "./transfer-failure.ts";

/**
 * How far a transfer is.
 *
 * @example
 * const percent = ({ bytes, sizeBytes }: Progress) => (sizeBytes === null ? null : (100 * bytes) / sizeBytes);
 */
export interface Progress {
  /** Bytes that the other side has acknowledged. */
  readonly bytes: number;
  /** Null while unknown. */
  readonly sizeBytes: number | null;
}

/**
 * What an upload goes by.
 *
 * @example
 * const options: UploadOptions = { chunkBytes: 4 * 2 ** 20, onProgress: ({ bytes }) => show(bytes) };
 */
export interface UploadOptions extends RetryOptions {
  /** Called with what is there already, and after each chunk. */
  readonly onProgress?: (progress: Progress) => void;
  /** Bytes of one request, 16 MiB by default: the size of the steps of progress, and of what is held in memory. */
  readonly chunkBytes?: number;
}

/**
 * A file that the server has stored, whose digest was compared with the bytes sent.
 *
 * @example
 * const { handle, size, sha256 }: Uploaded = await upload(url, file);
 */
export interface Uploaded {
  readonly handle: string;
  readonly size: number;
  /** Lower-case hex. */
  readonly sha256: string;
}

/** What an upload URL tells of its upload. */
interface UploadState {
  readonly handle: string;
  readonly offset: number;
  readonly sizeBytes: number | null;
  /** Once the server has it. */
  readonly sha256: string | null;
}

const tus = { "Tus-Resumable": "1.0.0" };
const defaultChunkBytes = 16 * 2 ** 20;

export async function uploadWith(
  platform: Platform,
  url: string | URL,
  source: ByteSource,
  options: UploadOptions,
): Promise<Uploaded> {
  const transfer = new Upload(String(url), source, options, await platform.newSha256());
  return transfer.run();
}

class Upload {
  readonly #url: string;
  readonly #source: ByteSource;
  readonly #options: UploadOptions;
  readonly #patience: Patience;
  readonly #chunkBytes: number;
  readonly #hash: { update(bytes: Uint8Array): void; digest(): string };
  #hashedBytes = 0;

  constructor(
    url: string,
    source: ByteSource,
    options: UploadOptions,
    hash: { update(bytes: Uint8Array): void; digest(): string },
  ) {
    this.#url = url;
    this.#source = source;
    this.#options = options;
    this.#hash = hash;
    this.#patience = new Patience(options);
    this.#chunkBytes = Math.max(1, options.chunkBytes ?? defaultChunkBytes);
  }

  async run(): Promise<Uploaded> {
    let state = await this.#look();
    this.#checkSize(state);
    for (;;) {
      this.#options.onProgress?.({
        bytes: state.offset,
        sizeBytes: state.sizeBytes ?? this.#source.sizeBytes,
      });
      await this.#hashUpTo(state.offset);
      const chunk = await this.#source.read(state.offset, this.#chunkBytes);
      const end = state.offset + chunk.length;
      if (end > this.#hashedBytes) {
        this.#hash.update(chunk.subarray(this.#hashedBytes - state.offset));
        this.#hashedBytes = end;
      }
      const known = this.#source.sizeBytes ?? state.sizeBytes;
      const isLast = known === null ? chunk.length < this.#chunkBytes : end >= known;
      if (!isLast && chunk.length === 0)
        throw changed("The source has fewer bytes than it had at the start.");
      if (known !== null && end > known)
        throw changed(`The source has more than the ${known} bytes of the upload.`);
      // Everything is there; whether it is this file is seen from its digest.
      if (chunk.length > 0 || state.sizeBytes === null)
        state = await this.#sendChunk(state, chunk, isLast ? end : this.#source.sizeBytes);
      if (isLast && state.offset === end) return this.#finish(end, state);
    }
  }

  #checkSize({ sizeBytes }: UploadState): void {
    const have = this.#source.sizeBytes;
    if (sizeBytes === null || have === null || sizeBytes === have) return;
    throw new TransferFailure(
      "size_mismatch",
      `The upload is for ${sizeBytes} bytes, and the source has ${have}.`,
      {
        recoveryHint: "Send the file that the upload is for, or create a new upload.",
      },
    );
  }

  /** The state after it, whether the chunk went through or not. */
  async #sendChunk(
    state: UploadState,
    chunk: Uint8Array<ArrayBuffer>,
    size: number | null,
  ): Promise<UploadState> {
    const headers = {
      ...tus,
      "Content-Type": "application/offset+octet-stream",
      "Upload-Offset": String(state.offset),
      ...(state.sizeBytes === null && size !== null && { "Upload-Length": String(size) }),
    };
    try {
      const response = await send(this.#url, { method: "PATCH", headers, body: chunk }, this.#options);
      if (!response.ok) throw await failureOf(response);
      await response.body?.cancel();
      this.#patience.progressed();
      return stateIn(response, state.sizeBytes ?? size);
    } catch (error) {
      if (!(error instanceof TransferFailure)) throw error;
      // Somebody else wrote, or an answer was lost: the server knows best where to go on.
      if (error.status !== 409 && !isTemporary(error)) throw error;
      if (!(error.status === 423 && error.cursor === state.offset + chunk.length))
        await this.#patience.afterFailure(error);
      const now = await this.#look();
      if (now.offset > state.offset) this.#patience.progressed();
      return now;
    }
  }

  async #look(): Promise<UploadState> {
    const response = await sendPatiently(
      this.#url,
      { method: "HEAD", headers: tus },
      this.#options,
      this.#patience,
    );
    return stateIn(response, wholeNumber(response.headers.get("upload-length")));
  }

  async #finish(size: number, last: UploadState): Promise<Uploaded> {
    let state = last;
    // HEAD answers once the digest is there.
    while (state.sha256 === null) {
      state = await this.#look();
      if (state.sha256 === null) await this.#patience.pause(500);
    }
    const sha256 = this.#hash.digest();
    if (state.sha256 !== sha256)
      throw new TransferFailure(
        "checksum_mismatch",
        `The server has stored bytes with sha256 ${state.sha256}, and those of the source have ${sha256}.`,
        {
          recoveryHint:
            "An earlier upload to this URL was of another file. Delete it and create a new upload.",
        },
      );
    this.#options.onProgress?.({ bytes: size, sizeBytes: size });
    return { handle: state.handle, size, sha256 };
  }

  async #hashUpTo(offset: number): Promise<void> {
    while (this.#hashedBytes < offset) {
      this.#options.signal?.throwIfAborted();
      const piece = await this.#source.read(
        this.#hashedBytes,
        Math.min(this.#chunkBytes, offset - this.#hashedBytes),
      );
      if (piece.length === 0) throw changed("The server has more bytes than the source.");
      this.#hash.update(piece);
      this.#hashedBytes += piece.length;
    }
  }
}

function stateIn({ headers, status }: Response, sizeBytes: number | null): UploadState {
  const handle = headers.get("longshore-handle");
  const offset = wholeNumber(headers.get("upload-offset"));
  if (handle === null || offset === null)
    throw new TransferFailure("not_longshore", "This is no upload URL of a Longshore server.", { status });
  return { handle, offset, sizeBytes, sha256: sha256In(headers.get("repr-digest")) };
}

function changed(message: string): TransferFailure {
  return new TransferFailure("source_changed", message, {
    recoveryHint: "Create a new upload for the file as it is now.",
  });
}
