import * as z from "zod";
import { digestAlgorithms } from "../../tasks/kinds/checksum/digests.ts";
import { handleArgument, requireHandle } from "../handle-argument.ts";
import { defineTaskTool } from "../task-tool.ts";

export const fileChecksum = defineTaskTool({
  name: "file_checksum",
  title: "Compute digests of a file",
  kind: "file_checksum",
  description: `Computes digests of a stored file of any size on the server, all of them in one read; nothing is downloaded.
Answers at once with a taskId; its result has digests, hex by algorithm. The sha256 alone is known already: upload_status tells it.`,
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  inputSchema: z.object({
    handle: handleArgument,
    algorithms: z
      .array(z.enum(digestAlgorithms))
      .min(1)
      .max(digestAlgorithms.length)
      .describe(`One or more of ${digestAlgorithms.join(", ")}.`),
  }),
  resultSchema: {
    handle: z.string().optional(),
    filename: z.string().optional(),
    size: z.number().optional(),
    digests: z.looseObject({}).optional().describe("Hex digest by algorithm."),
  },
  prepare: ({ handle, algorithms }) => ({
    handle: requireHandle(handle),
    algorithms: [...new Set(algorithms)],
  }),
});
