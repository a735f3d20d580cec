/**
 * The kind `file_import`: the server fetches a file. Its steps: what the source is, an upload for it, its bytes. After a crash the bytes go
 * on at the offset that was acknowledged; where the source is another one by then, all three begin again.
 */
import path from "node:path";
import * as z from "zod";
import { TransferError } from "../../../errors.ts";
import type { TransferEngine } from "../../../transfer/engine.ts";
import type { JsonValue, TaskContext, TaskKind } from "../../engine.ts";
import { discardFiles, isOver, removeFile } from "../clean-up.ts";
import { kindArguments } from "../kind-arguments.ts";
import { ByteProgress } from "../progress.ts";
import { AllowedAddresses } from "./allowed-addresses.ts";
import { defaultPatience, fetchInto, openSource, otherSize, type Patience } from "./fetch-into.ts";
import { fileSource } from "./file-source.ts";
import { httpSource } from "./http-source.ts";
import { parseImportUrl } from "./import-url.ts";
import { type Resolve, resolveHost } from "./pinned-request.ts";
import type { OpenSource, Source, SourceFacts } from "./source.ts";

/** A source that changes more often than this while it is read never holds still. */
const maxRounds = 5;
const idleMs = 60_000;

export interface ImportParts {
  readonly transfers: TransferEngine;
  readonly allowed: AllowedAddresses;
  /** Folders, absolute. */
  readonly roots: readonly string[];
  /** What is left out is as it is for everybody. */
  readonly resolve?: Resolve;
  readonly patience?: Patience;
  readonly idleMs?: number;
}

const importArguments = z.object({
  url: z.string(),
  filename: z.string().optional(),
  size: z.int().min(0).optional(),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
  /** Those of the process where it was asked for, which need not be those of the one that runs it. */
  rules: z.object({ allowed: z.array(z.string()), roots: z.array(z.string()) }).optional(),
});

type ImportArguments = z.output<typeof importArguments>;

export function fileImport(parts: ImportParts): TaskKind {
  return {
    kind: "file_import",
    restart: "whole",
    handler: (args, context) => importFile(parts, kindArguments(importArguments, args), context),
    withSettings: (args) => ({
      ...(args as { readonly [key: string]: JsonValue }),
      rules: { allowed: parts.allowed.entries, roots: parts.roots.map((root) => path.resolve(root)) },
    }),
    discard: discardFiles(parts.transfers),
  };
}

/** What this run holds; steps that an earlier run did give back what is recorded of them and leave nothing here. */
interface Held {
  source: OpenSource | null;
  handle: string | null;
}

async function importFile(
  parts: ImportParts,
  args: ImportArguments,
  context: TaskContext,
): Promise<JsonValue> {
  const { transfers, patience = defaultPatience } = parts;
  const { principal } = context;
  const source = sourceOf(parts, args);
  const held: Held = { source: null, handle: null };
  try {
    for (let round = 1; round <= maxRounds; round += 1) {
      const facts = await context.step(`source ${round}`, async ({ signal }) => {
        held.source ??= await openSource(source, patience, signal);
        return held.source.facts;
      });
      checkSize(args, facts);
      held.handle = await context.step(`upload ${round}`, async ({ key }) => {
        held.handle = await createUpload(transfers, principal, args, facts, `task-import ${key}`);
        return held.handle;
      });
      const handle = held.handle;
      const stored = await context.step(`bytes ${round}`, async ({ signal }) => {
        const first = held.source;
        held.source = null;
        const progress = new ByteProgress(context, "Fetched", args.size ?? facts.sizeBytes);
        const onProgress = (bytes: number): void => progress.reach(bytes);
        const isDigestDeclared = args.sha256 !== undefined;
        const fetched = await fetchInto({
          transfers,
          principal,
          handle,
          source,
          facts,
          first,
          isDigestDeclared,
          patience,
          signal,
          onProgress,
        });
        if (fetched.kind === "changed") {
          held.source = fetched.source;
          return null;
        }
        const { filename, sizeBytes, sha256 } = fetched.transfer;
        return { filename, size: sizeBytes, sha256 };
      });
      if (stored !== null) return { handle, ...stored, contentType: facts.contentType };
      await context.step(`discard ${round}`, () => removeFile(transfers, principal, handle));
      held.handle = null;
    }
    throw new TransferError(
      "task_failed",
      `The source was another one at each of ${maxRounds} attempts, or cannot go on where it broke off.`,
      {
        recoveryHint:
          "Call file_import again when the source no longer changes, or give its sha256: then it can go on without a validator.",
      },
    );
  } catch (error) {
    if (held.handle !== null && isOver(context))
      await removeFile(transfers, principal, held.handle).catch(() => {});
    throw error;
  } finally {
    held.source?.close();
  }
}

function sourceOf(
  { allowed, roots, resolve = resolveHost, idleMs: idle = idleMs }: ImportParts,
  { url: text, rules }: ImportArguments,
): Source {
  const url = parseImportUrl(text);
  return url.protocol === "file:"
    ? fileSource(url, rules?.roots ?? roots)
    : httpSource(url, {
        allowed: rules === undefined ? allowed : new AllowedAddresses(rules.allowed),
        resolve,
        idleMs: idle,
      });
}

function checkSize({ size }: ImportArguments, { sizeBytes }: SourceFacts): void {
  if (size !== undefined && sizeBytes !== null && size !== sizeBytes) {
    throw otherSize(`The source has ${sizeBytes} bytes, not ${size} as announced.`);
  }
}

/** The same key gives the same upload where the process died before its handle was recorded. */
async function createUpload(
  transfers: TransferEngine,
  principal: string,
  args: ImportArguments,
  facts: SourceFacts,
  idempotencyKey: string,
): Promise<string> {
  const { transfer } = await transfers.create(principal, {
    filename: args.filename ?? facts.filename,
    contentType: facts.contentType,
    metadata: null,
    sizeBytes: args.size ?? facts.sizeBytes,
    sha256: args.sha256 ?? null,
    idempotencyKey,
  });
  return transfer.handle;
}
