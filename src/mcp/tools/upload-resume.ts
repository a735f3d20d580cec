import * as z from "zod";
import { handleArgument, requireHandle } from "../handle-argument.ts";
import { invitationSchema } from "../output-schema.ts";
import { defineTool } from "../tool-definition.ts";
import { invitation } from "../upload-invitation.ts";

export const uploadResume = defineTool({
  name: "upload_resume",
  title: "Resume an upload",
  description: `Goes on with a large upload that stopped, without sending again what has arrived: gives a fresh upload URL and a curl line that starts at the offset reached.
Run the line in commands.curl where the file is; older URLs of the upload stay valid.
After a checksum mismatch (status mismatch) this starts the same handle over at offset 0: send the whole file again.`,
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  inputSchema: z.object({ handle: handleArgument }),
  outputSchema: invitationSchema,
  async handler({ handle }, context) {
    const resumed = await context.engine.resume(context.principal, requireHandle(handle));
    return { facts: invitation(resumed, context) };
  },
});
