import * as z from "zod";
import type { Transfer } from "../../transfer/engine.ts";
import { outputSchema } from "../output-schema.ts";
import { maxRows, pageFacts, pageInput, pageQuery } from "../paging.ts";
import { defineTool } from "../tool-definition.ts";
import { transferFacts } from "../transfer-facts.ts";

export const fileList = defineTool({
  name: "file_list",
  title: "List files and uploads",
  description: `Finds the handle of a file of any size; for the bytes of a large one go on with file_download, which gives a URL.
Lists your own files and unfinished uploads, oldest first, ${maxRows} at most; pass nextCursor as cursor for the next page. status narrows the list: complete are stored files, receiving unfinished uploads.`,
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  inputSchema: z.object({
    status: z
      .enum(["receiving", "verifying", "complete", "mismatch", "expired"])
      .optional()
      .describe("Only these."),
    ...pageInput,
  }),
  outputSchema: outputSchema({
    files: z.array(z.looseObject({ handle: z.string(), status: z.string(), offset: z.number() })).optional(),
    nextCursor: z.string().optional(),
  }),
  async handler(given, { engine, principal }) {
    const { transfers, nextCursor } = await engine.list(principal, pageQuery(given));
    return {
      facts: pageFacts(
        "file_list",
        "files",
        { rows: transfers.map(row), nextCursor },
        {
          none: "Nothing is here. Call upload_create to bring a file.",
          use: "Use a handle with file_download, file_read, upload_status or upload_resume.",
        },
      ),
    };
  },
});

function row(transfer: Transfer): Record<string, unknown> {
  const { filename, sha256, status, contentType, createdAt } = transfer;
  return {
    ...transferFacts(transfer),
    ...(filename !== null && { filename: shortened(filename, 100) }),
    ...(status === "complete" && sha256 !== null && { sha256 }),
    ...(contentType !== null && { contentType: shortened(contentType, 60) }),
    createdAt: createdAt.toISOString(),
  };
}

/** A page of the longest names would not fit a result; the ends, with the extension, tell files apart. upload_status has all of it. */
function shortened(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 30)}…${text.slice(-29)}`.toWellFormed();
}
