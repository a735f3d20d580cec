/** The tools that start work on files, in the order in which they are listed; the kinds of the same names do it. */
import type { ToolDefinition } from "../tool-definition.ts";
import { fileArchive } from "./file-archive.ts";
import { fileChecksum } from "./file-checksum.ts";
import { fileExtract } from "./file-extract.ts";
import { fileImport } from "./file-import.ts";

export const fileTaskTools: readonly ToolDefinition[] = [fileImport, fileChecksum, fileArchive, fileExtract];
