import * as z from "zod";
import { TransferError } from "../../errors.ts";
import { plainFilename, plainSha256 } from "../file-arguments.ts";
import { invitationSchema } from "../output-schema.ts";
import { defineTool } from "../tool-definition.ts";
import { invitation } from "../upload-invitation.ts";

export const uploadCreate = defineTool({
  name: "upload_create",
  title: "Create an upload",
  description: `Brings a file of any size, large ones above all, to the server without passing its bytes through this conversation: call this first, then run the line in commands.curl where the file is (or give the upload URL to a tus client).
Answers with a handle, which names the upload and later the stored file, an upload URL that resumes after interruptions, and the host that a sandbox must allow.
Give size (bytes) whenever you can find it out: without it a tus client must use a deferred length. Give sha256 to have the file checked on arrival.
Only where no command can be run and the file is small (inline.maxFileBytes): send it in chunks with upload_write.`,
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  inputSchema: z.object({
    filename: z
      .string()
      .min(1)
      .max(4096)
      .describe("Name of the file, such as report.pdf; folders are dropped."),
    size: z
      .int()
      .min(0)
      .optional()
      .describe(
        "Size in bytes. Please give it: stat -c %s FILE (Linux) or stat -f %z FILE (macOS) prints it.",
      ),
    sha256: z.string().optional().describe("Hex sha256 of the whole file, checked when all bytes are here."),
    contentType: z.string().max(255).optional().describe("Media type, such as application/pdf."),
    idempotencyKey: z
      .string()
      .min(1)
      .max(255)
      .optional()
      .describe("Any string of your own; a repeat with the same key and arguments gives the same handle."),
  }),
  outputSchema: invitationSchema,
  async handler({ filename, size, sha256, contentType, idempotencyKey }, context) {
    const created = await context.engine.create(context.principal, {
      filename: plainFilename(filename),
      contentType: contentType === undefined ? null : plainContentType(contentType),
      metadata: null,
      sizeBytes: size ?? null,
      sha256: sha256 === undefined ? null : plainSha256(sha256),
      idempotencyKey: idempotencyKey ?? null,
    });
    return { facts: invitation(created, context) };
  },
});

/** RFC 9110 section 8.3.1: type, subtype, and whatever parameters in visible ASCII. */
function plainContentType(text: string): string {
  if (/^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:[ \t]*;[\x20-\x7e]*)?$/.test(text)) return text;
  throw new TransferError("invalid_param", "contentType: it must be a media type such as text/csv.", {
    param: "contentType",
  });
}
