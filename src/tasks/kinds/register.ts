/** The kinds of work on files that every store offers. */
import type { TransferEngine } from "../../transfer/engine.ts";
import type { TaskEngine } from "../engine.ts";
import { fileArchive } from "./archive/file-archive.ts";
import { fileChecksum } from "./checksum/file-checksum.ts";
import { defaultExtractLimits, type ExtractLimits, fileExtract } from "./extract/file-extract.ts";
import { AllowedAddresses } from "./import/allowed-addresses.ts";
import { fileImport, type ImportParts } from "./import/file-import.ts";

export interface FileKindParts {
  readonly transfers: TransferEngine;
  /** Hosts, addresses and networks from which may be fetched beyond the public internet. */
  readonly allowImport: readonly string[];
  /** Folders from which `file:` URLs may be taken. */
  readonly importRoots: readonly string[];
  /** For tests: other names, other patience. */
  readonly imports?: Pick<ImportParts, "resolve" | "patience" | "idleMs">;
  readonly extractLimits?: Partial<ExtractLimits>;
}

/** Makes this process take tasks of these kinds. @throws AllowedEntryFault */
export function registerFileKinds(tasks: TaskEngine, parts: FileKindParts): void {
  const { transfers, allowImport, importRoots, imports, extractLimits } = parts;
  tasks.register(
    fileImport({ transfers, allowed: new AllowedAddresses(allowImport), roots: importRoots, ...imports }),
  );
  tasks.register(fileChecksum());
  tasks.register(fileArchive({ transfers }));
  tasks.register(
    fileExtract({
      transfers,
      limits: { ...defaultExtractLimits, maxFileBytes: transfers.limits.maxFileBytes, ...extractLimits },
    }),
  );
}
