/**
 * The kind `file_extract`: each file of an archive becomes a stored file. The whole archive is judged first (a step), then each file is
 * stored by a step of its own, so that a crash costs one of them. Where the archive is refused, nothing of it stays.
 */
import { Readable } from "node:stream";
import * as z from "zod";
import type { TransferEngine } from "../../../transfer/engine.ts";
import type { JsonValue, OpenedFile, TaskContext, TaskKind } from "../../engine.ts";
import type { FileToWrite } from "../../files.ts";
import { discardFiles, isOver, removeFiles } from "../clean-up.ts";
import { kindArguments } from "../kind-arguments.ts";
import { report, sizeText } from "../progress.ts";
import { type StoredFile, storeAsStep } from "../stored-step.ts";
import { type ArchiveFormat, archiveFormat } from "./archive-format.ts";
import type { ExtractLimits } from "./extract-limits.ts";
import { type ExtractedFile, extracted, listed, manifestText } from "./extract-result.ts";
import { readTar } from "./tar-reader.ts";
import { openZip } from "./zip-reader.ts";

export type { ExtractLimits } from "./extract-limits.ts";

export const defaultExtractLimits = {
  maxEntries: 10_000,
  maxTotalBytes: 256 * 2 ** 30,
  maxRatio: 200,
  ratioFromBytes: 64 << 20,
} as const;

/** Files of a zip that are stored side by side. */
const zipAtOnce = 4;

const progressMs = 500;

const extractArguments = z.object({ handle: z.string() });

export interface ExtractParts {
  readonly transfers: TransferEngine;
  readonly limits: ExtractLimits;
}

export function fileExtract(parts: ExtractParts): TaskKind {
  return {
    kind: "file_extract",
    restart: "whole",
    handler: (args, context) =>
      new Extraction(parts, context).run(kindArguments(extractArguments, args).handle),
    discard: discardFiles(parts.transfers),
  };
}

type Scan = { readonly format: ArchiveFormat; readonly files: number; readonly bytes: number };

class Extraction {
  readonly #parts: ExtractParts;
  readonly #context: TaskContext;
  readonly #stored = new Set<string>();
  #done = 0;
  #bytes = 0;
  #toldAt = Number.NEGATIVE_INFINITY;

  constructor(parts: ExtractParts, context: TaskContext) {
    this.#parts = parts;
    this.#context = context;
  }

  async run(handle: string): Promise<JsonValue> {
    const { transfers } = this.#parts;
    const context = this.#context;
    try {
      const archive = await context.files.open(handle);
      const scan = await context.step("scan", () => this.#scan(archive));
      const files = await (scan.format === "zip"
        ? this.#fromZip(archive, scan)
        : this.#fromTar(archive, scan));
      const rows = listed(files);
      const result = { format: scan.format, count: files.length, totalBytes: scan.bytes, files: rows };
      if (rows.length === files.length) return result;
      const manifest = await this.#store("manifest", {
        filename: `${archive.transfer.filename ?? handle}.files.jsonl`,
        contentType: "application/x-ndjson",
        content: manifestText(files),
      });
      return { ...result, manifest };
    } catch (error) {
      if (isOver(context)) await removeFiles(transfers, context.principal, this.#stored);
      throw error;
    }
  }

  async #scan(archive: OpenedFile): Promise<Scan> {
    report(this.#context, "Looking through the archive");
    const format = await archiveFormat(archive);
    if (format === "zip") {
      const { members, bytes } = await openZip(archive, this.#parts.limits);
      return { format, files: members.length, bytes };
    }
    let files = 0;
    let bytes = 0;
    for await (const { size } of readTar(archive, format === "tar.gz", this.#parts.limits)) {
      this.#context.signal.throwIfAborted();
      files += 1;
      bytes += size;
    }
    return { format, files, bytes };
  }

  async #fromZip(archive: OpenedFile, scan: Scan): Promise<ExtractedFile[]> {
    const { members, open } = await openZip(archive, this.#parts.limits);
    const files: ExtractedFile[] = [];
    const left = [...members.entries()].reverse();
    let failed = false;
    const worker = async (): Promise<void> => {
      for (let next = left.pop(); next !== undefined && !failed; next = left.pop()) {
        const [index, member] = next;
        const { path, entry } = member;
        files[index] = await this.#storeMember(index, path, entry.uncompressedSize, scan, () => open(member));
      }
    };
    const workers = Array.from({ length: zipAtOnce }, () =>
      worker().catch((error: unknown) => {
        failed = true;
        throw error;
      }),
    );
    // What the others have begun is to be known before it is removed.
    await Promise.allSettled(workers);
    await Promise.all(workers);
    return files;
  }

  async #fromTar(archive: OpenedFile, scan: Scan): Promise<ExtractedFile[]> {
    const files: ExtractedFile[] = [];
    for await (const { path, size, stream } of readTar(
      archive,
      scan.format === "tar.gz",
      this.#parts.limits,
    )) {
      files.push(await this.#storeMember(files.length, path, size, scan, () => stream));
    }
    return files;
  }

  async #storeMember(
    index: number,
    path: string,
    size: number,
    scan: Scan,
    open: () => AsyncIterable<Buffer> | Promise<AsyncIterable<Buffer>>,
  ): Promise<ExtractedFile> {
    let read = 0;
    const pieces = async function* (this: Extraction): AsyncGenerator<Buffer> {
      for await (const piece of await open()) {
        read += piece.byteLength;
        this.#advance(piece.byteLength, scan);
        yield piece;
      }
    };
    const stored = await this.#store(`file ${index}`, {
      filename: path,
      contentType: null,
      content: () => Readable.from(pieces.call(this), { objectMode: false, highWaterMark: 256 << 10 }),
    });
    this.#done += 1;
    this.#advance(size - read, scan);
    return extracted(path, stored);
  }

  #store(name: string, file: FileToWrite): Promise<StoredFile> {
    return storeAsStep(this.#context, this.#parts.transfers, name, file, (handle) =>
      this.#stored.add(handle),
    );
  }

  #advance(bytes: number, scan: Scan): void {
    this.#bytes += bytes;
    if (performance.now() - this.#toldAt < progressMs) return;
    this.#toldAt = performance.now();
    const message = `Extracted ${this.#done} of ${scan.files} files, ${sizeText(this.#bytes)} of ${sizeText(scan.bytes)}`;
    report(this.#context, message, scan.bytes === 0 ? undefined : Math.min(1, this.#bytes / scan.bytes));
  }
}
