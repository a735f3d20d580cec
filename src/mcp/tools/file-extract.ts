import * as z from "zod";
import { handleArgument, requireHandle } from "../handle-argument.ts";
import { defineTaskTool } from "../task-tool.ts";
import { idempotencyKeyArgument } from "../task-tool-schemas.ts";

export const fileExtract = defineTaskTool({
  name: "file_extract",
  title: "Unpack an archive",
  kind: "file_extract",
  description: `Unpacks a stored archive of any size on the server (zip, tar or tar.gz): each file in it becomes a stored file with a handle of its own.
Answers at once with a taskId; its result has files with path, handle, size and sha256; of many the first ones, and in manifest the handle of a list of all, one JSON object a line.
An archive with links, paths that lead out of it, encrypted files or far too many bytes is refused as a whole.`,
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  inputSchema: z.object({ handle: handleArgument, idempotencyKey: idempotencyKeyArgument }),
  resultSchema: {
    format: z.string().optional(),
    count: z.number().optional().describe("Files in the archive."),
    totalBytes: z.number().optional(),
    files: z.array(z.looseObject({ path: z.string(), handle: z.string() })).optional(),
    manifest: z
      .looseObject({ handle: z.string() })
      .optional()
      .describe("List of all files, where files does not have them all."),
  },
  prepare: ({ handle }) => ({ handle: requireHandle(handle) }),
});
