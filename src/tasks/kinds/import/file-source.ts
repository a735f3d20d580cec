/**
 * A file on this machine, under one of the folders that the operator has named. Links may lead about inside of them and not out: what
 * counts is where the opened file is, not what its path looked like before.
 */
import { type BigIntStats, constants } from "node:fs";
import { type FileHandle, lstat, open, realpath } from "node:fs/promises";
import path from "node:path";
import { Readable } from "node:stream";
import { TransferError } from "../../../errors.ts";
import { plainName } from "../plain-name.ts";
import { filePath, urlNotAllowed } from "./import-url.ts";
import type { Opening, Source, SourceFacts } from "./source.ts";

export function fileSource(url: URL, roots: readonly string[]): Source {
  const named = filePath(url);
  return {
    label: "the server's disk",
    async open(from, signal) {
      const { file, stats, real } = await openWithin(named, roots);
      try {
        signal.throwIfAborted();
        const facts = factsOf(named, stats);
        if (from !== null && from.facts.validator !== facts.validator) {
          await file.close();
          return { kind: "changed", source: null };
        }
        return opened(file, facts, from?.offset ?? 0, real);
      } catch (error) {
        await file.close().catch(() => {});
        throw error;
      }
    },
  };
}

async function opened(file: FileHandle, facts: SourceFacts, start: number, real: string): Promise<Opening> {
  const { sizeBytes, validator } = facts;
  const end = (sizeBytes ?? 0) - 1;
  const stream =
    start > end
      ? Readable.from([], { objectMode: false })
      : file.createReadStream({ start, end, highWaterMark: 512 << 10 });
  // A stream with nothing to read does not close what it was not given.
  if (start > end) await file.close();
  stream.on("error", () => {});
  return {
    kind: "open",
    source: {
      facts,
      start,
      stream,
      isSame: async () => validatorOf(await lstat(real, { bigint: true })) === validator,
      close: () => void stream.destroy(),
    },
  };
}

function factsOf(named: string, stats: BigIntStats): SourceFacts {
  return {
    filename: plainName(path.basename(named)) ?? "file",
    contentType: null,
    sizeBytes: Number(stats.size),
    validator: validatorOf(stats),
  };
}

function validatorOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join("-");
}

async function openWithin(
  named: string,
  roots: readonly string[],
): Promise<{ file: FileHandle; stats: BigIntStats; real: string }> {
  const realRoots = await Promise.all(roots.map((root) => realpath(root).catch(() => null)));
  const places = realRoots.filter((root) => root !== null);
  // Outside of the folders nothing is looked at, so that nobody learns what is there.
  if (![...roots, ...places].some((root) => isWithin(named, root))) throw outside();
  const real = await found(realpath(named));
  if (!places.some((root) => isWithin(real, root))) throw outside();
  // Without waiting: a named pipe would be waited for for ever.
  const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
  const file = await found(open(real, flags));
  try {
    const stats = await file.stat({ bigint: true });
    if (!stats.isFile()) throw failed("It is not a plain file.");
    // A folder on the way may have become a link since it was looked at: then the path leads to another file than the opened one.
    const [again, there] = await found(Promise.all([realpath(real), lstat(real, { bigint: true })]));
    if (again !== real || there.dev !== stats.dev || there.ino !== stats.ino) throw outside();
    return { file, stats, real };
  } catch (error) {
    await file.close();
    throw error;
  }
}

function isWithin(file: string, folder: string): boolean {
  const relative = path.relative(folder, file);
  return (
    relative !== "" &&
    relative !== ".." &&
    !relative.startsWith(`..${path.sep}`) &&
    !path.isAbsolute(relative)
  );
}

async function found<T>(look: Promise<T>): Promise<T> {
  try {
    return await look;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") throw failed("There is no such file.");
    if (code === "ELOOP") throw outside();
    throw failed(`It cannot be read${code === undefined ? "" : ` (${code})`}.`);
  }
}

function outside(): TransferError {
  return urlNotAllowed(
    "This file is in none of the folders from which files may be imported.",
    "Upload the file with upload_create, or ask the operator to name its folder in LONGSHORE_IMPORT_ROOTS.",
  );
}

function failed(message: string): TransferError {
  return new TransferError("task_failed", message, {
    recoveryHint: "Check the path, then call file_import again.",
  });
}
