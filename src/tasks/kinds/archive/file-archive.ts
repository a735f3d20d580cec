/** The kind `file_archive`: stored files into one zip or tar. Its steps: what goes in under which name, and the archive. */
import { type Readable, Transform } from "node:stream";
import * as z from "zod";
import type { TransferEngine } from "../../../transfer/engine.ts";
import type { JsonValue, TaskContext, TaskKind } from "../../engine.ts";
import { discardFiles, isOver, removeFiles } from "../clean-up.ts";
import { kindArguments } from "../kind-arguments.ts";
import { ByteProgress } from "../progress.ts";
import { storeAsStep } from "../stored-step.ts";
import type { ArchiveEntry, OpenEntry } from "./archive-entry.ts";
import { entryNames } from "./entry-names.ts";
import { tarGzStream, tarStream } from "./tar-stream.ts";
import { zipStream } from "./zip-stream.ts";

export const archiveFormats = ["zip", "tar", "tar.gz"] as const;

const formats = {
  zip: { contentType: "application/zip", stream: zipStream },
  tar: { contentType: "application/x-tar", stream: tarStream },
  "tar.gz": { contentType: "application/gzip", stream: tarGzStream },
} as const;

export const maxArchiveFiles = 1_000;

const archiveArguments = z.object({
  handles: z.array(z.string()).min(1).max(maxArchiveFiles),
  format: z.enum(archiveFormats),
  filename: z.string().optional(),
});

export interface ArchiveParts {
  readonly transfers: TransferEngine;
}

export function fileArchive({ transfers }: ArchiveParts): TaskKind {
  return {
    kind: "file_archive",
    restart: "whole",
    handler: (args, context) => archive(transfers, kindArguments(archiveArguments, args), context),
    discard: discardFiles(transfers),
  };
}

async function archive(
  transfers: TransferEngine,
  { handles, format, filename }: z.output<typeof archiveArguments>,
  context: TaskContext,
): Promise<JsonValue> {
  const entries = await context.step("contents", () => contents(context, handles));
  const stored = new Set<string>();
  const progress = new ByteProgress(
    context,
    "Packed",
    entries.reduce((sum, { size }) => sum + size, 0),
  );
  const open: OpenEntry = async ({ handle }) =>
    counted((await context.files.open(handle)).stream(), progress);
  try {
    const file = {
      filename: filename ?? `archive.${format}`,
      contentType: formats[format].contentType,
      content: () => formats[format].stream(entries, open),
    };
    const { handle, size, sha256, ...rest } = await storeAsStep(context, transfers, "archive", file, (one) =>
      stored.add(one),
    );
    return { handle, filename: rest.filename, size, sha256, files: entries.length };
  } catch (error) {
    if (isOver(context)) await removeFiles(transfers, context.principal, stored);
    throw error;
  }
}

/** Refuses what cannot be read before anything is packed. */
async function contents(context: TaskContext, handles: readonly string[]): Promise<ArchiveEntry[]> {
  const files: { filename: string; size: number; modifiedAt: number; handle: string }[] = [];
  for (const handle of handles) {
    const { transfer } = await context.files.open(handle);
    const { filename, sizeBytes, completedAt, createdAt } = transfer;
    // Whole seconds: zip and tar keep no more.
    const modifiedAt = Math.floor((completedAt ?? createdAt).getTime() / 1_000) * 1_000;
    files.push({ handle, filename: filename ?? handle, size: sizeBytes ?? 0, modifiedAt });
  }
  const names = entryNames(files.map(({ filename }) => filename));
  return files.map(({ handle, size, modifiedAt }, index) => ({
    handle,
    size,
    modifiedAt,
    name: names[index] ?? handle,
  }));
}

function counted(stream: Readable, progress: ByteProgress): Readable {
  const counter = new Transform({
    transform(piece: Buffer, _encoding, done) {
      progress.add(piece.byteLength);
      done(null, piece);
    },
  });
  stream.on("error", (error) => counter.destroy(error));
  counter.on("close", () => stream.destroy());
  return stream.pipe(counter);
}
