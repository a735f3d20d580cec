import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import * as z from "zod";
import { TransferError } from "../../errors.ts";
import { decodeBase64 } from "../../integrity/base64.ts";
import type { Transfer } from "../../transfer/engine.ts";
import { handleArgument, pathNotReachable, requireHandle } from "../handle-argument.ts";
import { outputSchema, sha256Fact, transferFactSchemas } from "../output-schema.ts";
import { defineTool, type ToolContext } from "../tool-definition.ts";
import { nextStepFor, transferFacts } from "../transfer-facts.ts";
import { uploadUrls } from "../upload-invitation.ts";

/** A path sent as data, and no damaged base64, which may well begin with a slash: that of every JPEG does. */
const pathAsData = /^(?=.*[.\\:~])(?:file:|~|\.{0,2}\/|[a-z]:[\\/]|\\\\).{1,1023}$/i;

export const uploadWrite = defineTool({
  name: "upload_write",
  title: "Write a chunk of a small file",
  description: `Not for large files: send those with the command of upload_create or upload_resume. This is for small files where no command can be run; the limits are in inline of upload_create.
Writes one chunk, given as standard base64 (padded, no line breaks), at the offset reached, which each answer tells. Retyping base64 is error-prone: give the chunk's sha256 if you can, and compare chunkSha256.
Set final on the last chunk where the size was not given. offset 0 after a checksum mismatch starts the file over.`,
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  inputSchema: z.object({
    handle: handleArgument,
    offset: z
      .int()
      .min(0)
      .describe("Offset of the chunk's first byte: the offset that the last answer told, 0 at first."),
    data: z.string().describe("The chunk's bytes as base64."),
    sha256: z
      .string()
      .optional()
      .describe("Hex sha256 of this chunk's bytes, checked before anything is stored."),
    final: z.boolean().optional().describe("True: the file ends with this chunk."),
  }),
  outputSchema: outputSchema({
    ...transferFactSchemas,
    chunkSha256: z.string().optional(),
    sha256: sha256Fact,
  }),
  async handler({ handle, offset, data, sha256, final }, context) {
    const { engine, principal } = context;
    const id = requireHandle(handle);
    const bytes = chunkOf(data, engine.limits.inlineChunkBytes);
    const chunkSha256 = createHash("sha256").update(bytes).digest("hex");
    const before = await engine.status(principal, id);
    const startsOver = before.status === "mismatch" && offset === 0;
    const reached = startsOver ? 0 : before.offset;
    if (before.status === "receiving" || startsOver) {
      await requireInline(before, reached, offset === reached ? bytes.length : 0, context);
      requireDigest(sha256, chunkSha256, reached);
    }
    // The URL that comes with it is not needed here, but only a resumed upload is at 0 again.
    if (startsOver) await engine.resume(principal, id);
    const body = { stream: Readable.from(bytes.length === 0 ? [] : [bytes]), lengthBytes: bytes.length };
    const { transfer } = await engine
      .appendTo(principal, id, { offset, body, final: final === true })
      .catch((error: unknown) => {
        throw before.status === "complete" ? nothingToSend(error, id) : error;
      });
    return {
      facts: {
        ...transferFacts(transfer),
        chunkSha256,
        ...(transfer.status === "complete" && transfer.sha256 !== null && { sha256: transfer.sha256 }),
        nextStep: transfer.status === "receiving" ? howToGoOn(transfer, context) : nextStepFor(transfer),
      },
    };
  },
});

function chunkOf(data: string, maxBytes: number): Buffer {
  // Four characters for three bytes: what is far too long is not decoded at all.
  const tooLarge = data.length > Math.ceil(maxBytes / 3) * 4;
  if (!tooLarge && pathAsData.test(data)) throw pathNotReachable(data, "data");
  const bytes = tooLarge ? null : decodeBase64(data, "data");
  if (bytes !== null && bytes.length <= maxBytes) return bytes;
  throw new TransferError("chunk_too_large", `A chunk has at most ${maxBytes} bytes.`, {
    param: "data",
    recoveryHint: `Send at most ${maxBytes} bytes at a time, from the same offset on; for more than a few chunks call upload_resume and use its command.`,
  });
}

/** Neither the file that was announced nor the one that grows here may be larger than what is meant to go through a conversation. */
async function requireInline(
  before: Transfer,
  reached: number,
  chunkBytes: number,
  context: ToolContext,
): Promise<void> {
  const { engine, principal } = context;
  const maxBytes = engine.limits.inlineFileBytes;
  if (Math.max(before.sizeBytes ?? 0, reached + chunkBytes) <= maxBytes) return;
  const { handle } = before;
  const urls = uploadUrls(await engine.resume(principal, handle), context);
  throw new TransferError(
    "inline_too_large",
    `Files of more than ${maxBytes} bytes do not go through upload_write.`,
    {
      cursor: reached,
      recoveryHint: "Run the command in commands.curl where the file is; it sends the bytes over HTTP.",
      repair: { tool: "upload_resume", arguments: { handle } },
      extra: { ...urls },
    },
  );
}

function requireDigest(announced: string | undefined, actual: string, reached: number): void {
  if (announced === undefined || announced.toLowerCase() === actual) return;
  if (!/^[0-9a-f]{64}$/i.test(announced)) {
    throw new TransferError("invalid_param", "sha256: it must be 64 hexadecimal digits.", {
      param: "sha256",
    });
  }
  throw new TransferError("checksum_mismatch", `The chunk that arrived has the sha256 ${actual}.`, {
    status: 400,
    cursor: reached,
    extra: { chunkSha256: actual },
  });
}

function howToGoOn({ handle, offset, sizeBytes }: Transfer, { engine }: ToolContext): string {
  const next = `call upload_write with handle "${handle}" and offset ${offset}`;
  if (sizeBytes !== null)
    return `${sizeBytes - offset} bytes are missing: ${next} for the next chunk of at most ${engine.limits.inlineChunkBytes} bytes.`;
  return `If there is more, ${next} for the next chunk; set final to true with the last one. If this was the last one, ${next}, empty data and final true.`;
}

/** Most often the answer to the last chunk was lost, and the chunk comes a second time. */
function nothingToSend(error: unknown, handle: string): unknown {
  if (!(error instanceof TransferError)) return error;
  return new TransferError(error.code, error.message, {
    ...error.options,
    recoveryHint:
      "The upload is complete and nothing is left to send. Call upload_status and compare its sha256 with that of your file.",
    repair: { tool: "upload_status", arguments: { handle } },
    cause: error,
  });
}
