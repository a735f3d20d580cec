import * as z from "zod";
import { archiveFormats, maxArchiveFiles } from "../../tasks/kinds/archive/file-archive.ts";
import { plainFilename } from "../file-arguments.ts";
import { handleArgument, requireHandle } from "../handle-argument.ts";
import { defineTaskTool } from "../task-tool.ts";
import { idempotencyKeyArgument, storedFileSchemas } from "../task-tool-schemas.ts";

export const fileArchive = defineTaskTool({
  name: "file_archive",
  title: "Pack files into an archive",
  kind: "file_archive",
  description: `Packs stored files, large ones too, into one zip, tar or tar.gz on the server; nothing is downloaded or uploaded.
Answers at once with a taskId; its result has the handle of the archive, a new stored file. Names inside are the files' own; the second of a name gets a number.`,
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  inputSchema: z.object({
    handles: z
      .array(handleArgument)
      .min(1)
      .max(maxArchiveFiles)
      .describe(`Handles of stored files, in order; at most ${maxArchiveFiles}.`),
    format: z.enum(archiveFormats).describe("zip, tar or tar.gz."),
    filename: z
      .string()
      .min(1)
      .max(4096)
      .optional()
      .describe("Name of the archive; default archive with the extension of its format."),
    idempotencyKey: idempotencyKeyArgument,
  }),
  resultSchema: { ...storedFileSchemas, files: z.number().optional().describe("Files in the archive.") },
  prepare: ({ handles, format, filename }) => ({
    handles: handles.map(requireHandle),
    format,
    ...(filename !== undefined && { filename: plainFilename(filename) }),
  }),
});
