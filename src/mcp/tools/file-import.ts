import * as z from "zod";
import { parseImportUrl } from "../../tasks/kinds/import/import-url.ts";
import { plainFilename, plainSha256 } from "../file-arguments.ts";
import { looksLikePath, pathNotReachable } from "../handle-argument.ts";
import { defineTaskTool } from "../task-tool.ts";
import { idempotencyKeyArgument, storedFileSchemas } from "../task-tool-schemas.ts";

export const fileImport = defineTaskTool({
  name: "file_import",
  title: "Fetch a file by URL",
  kind: "file_import",
  description: `Brings a file of any size from a URL to the server, which fetches it by itself and goes on where it was after any interruption; no byte passes through this conversation.
Answers at once with a taskId; its result has handle, size and sha256 of the stored file. For public https and http URLs, and others that the operator has allowed.
Give sha256 or size where they are known: another file is refused then. For a file on your own machine use upload_create.`,
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
  inputSchema: z.object({
    url: z
      .string()
      .min(1)
      .max(8192)
      .describe("https: or http: URL; file: under a folder that the operator has named."),
    filename: z
      .string()
      .min(1)
      .max(4096)
      .optional()
      .describe("Name for the file; by default the one that the source gives."),
    size: z.int().min(0).optional().describe("Size in bytes that it must have."),
    sha256: z.string().optional().describe("Hex sha256 that it must have."),
    idempotencyKey: idempotencyKeyArgument,
  }),
  resultSchema: { ...storedFileSchemas, contentType: z.string().optional() },
  prepare({ url, filename, size, sha256 }) {
    if (looksLikePath(url) && !/^file:/i.test(url)) throw pathNotReachable(url, "url");
    parseImportUrl(url);
    return {
      url,
      ...(filename !== undefined && { filename: plainFilename(filename) }),
      ...(size !== undefined && { size }),
      ...(sha256 !== undefined && { sha256: plainSha256(sha256) }),
    };
  },
});
