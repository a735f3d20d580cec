/** One server with tools of its own, whatever SDK it is built on: what the tests of the library drive. */
import { createHash } from "node:crypto";
import * as z from "zod";
import {
  asToolRegistrar,
  type FileTransfer,
  type McpServerLike,
  type Store,
  TransferError,
  toolError,
  withFileTransfer,
  withTasks,
} from "../../../src/index.ts";

type Register = (
  name: string,
  config: object,
  callback: (args: { handle: string }, context: unknown) => Promise<object>,
) => unknown;

export function equip(mcp: McpServerLike, store: Store, publicUrl: string): FileTransfer {
  const registrar = asToolRegistrar(mcp);
  const tasks = withTasks(registrar, { store });
  const files = withFileTransfer(registrar, { store, publicUrl });

  // A tool of the server's own, in the SDK's way, that reads an upload.
  const register = mcp.registerTool.bind(mcp) as unknown as Register;
  register(
    "hash-file",
    { description: "Digest of a file.", inputSchema: z.object({ handle: z.string() }) },
    async ({ handle }, context) => {
      try {
        const file = await files.open(handle, context);
        const hash = createHash("md5");
        for await (const piece of file.stream()) hash.update(piece as Buffer);
        return { content: [{ type: "text", text: hash.digest("hex") }] };
      } catch (error) {
        return toolError(error);
      }
    },
  );

  tasks.taskTool(
    "write-report",
    {
      description: "Writes a report on a file.",
      inputSchema: { handle: z.string(), copies: z.number().default(2) },
      outputSchema: { report: z.string(), copies: z.number(), mood: z.string().default("calm") },
    },
    async ({ handle, copies }, ctx) => {
      const file = await ctx.files.open(handle);
      const lines = await ctx.step("count", async () => {
        let count = 0;
        for await (const piece of file.stream())
          count += (piece as Buffer).filter((byte) => byte === 10).length;
        return count;
      });
      await ctx.progress(`${lines} lines`, 0.5);
      const go = await ctx.needInput({ prompt: "Write it?", choices: ["yes", "no"] });
      if (go === "no") throw new TransferError("forbidden", "Somebody said no.");
      const report = await ctx.files.write("report.txt", `${lines} lines\n`.repeat(copies));
      return { report: report.handle, copies };
    },
  );
  tasks.taskTool("wait-for-ever", { description: "Waits." }, async (_args, ctx) => {
    await ctx.sleep(3_600_000);
  });
  return files;
}
