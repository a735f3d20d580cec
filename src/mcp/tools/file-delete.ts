import * as z from "zod";
import { handleArgument, requireHandle } from "../handle-argument.ts";
import { outputSchema } from "../output-schema.ts";
import { defineTool } from "../tool-definition.ts";

export const fileDelete = defineTool({
  name: "file_delete",
  title: "Delete a file or an upload",
  description: `Deletes a file of any size, large or small, or gives up an unfinished upload and frees its space. There is no way back: the handle and its URLs stop working at once.`,
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  inputSchema: z.object({ handle: handleArgument }),
  outputSchema: outputSchema({ handle: z.string().optional() }),
  async handler({ handle }, { engine, principal }) {
    const id = requireHandle(handle);
    await engine.removeOwn(principal, id);
    return { facts: { handle: id, status: "deleted", nextStep: "It is gone; nothing is left to do." } };
  },
});
