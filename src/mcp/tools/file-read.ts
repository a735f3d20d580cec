import * as z from "zod";
import { TransferError } from "../../errors.ts";
import type { OpenFile } from "../../transfer/engine.ts";
import { handleArgument, requireHandle } from "../handle-argument.ts";
import { outputSchema, transferFactSchemas } from "../output-schema.ts";
import { marginBytes, textWindow } from "../text-window.ts";
import { defineTool } from "../tool-definition.ts";
import { transferFacts } from "../transfer-facts.ts";

const windowBytes = 8192;

interface Window {
  readonly data: string;
  readonly bytes: number;
}

export const fileRead = defineTool({
  name: "file_read",
  title: "Read a part of a file",
  description: `Not for large files as a whole: get those with file_download. This looks into a stored file, one window of at most ${windowBytes} bytes a call: its head, its tail, or what lies at an offset.
encoding text (the default) gives UTF-8 and never splits a character; a file that is not UTF-8 needs encoding base64. Go on with nextOffset until eof is true.`,
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  inputSchema: z.object({
    handle: handleArgument,
    offset: z.int().min(0).optional().describe("First byte; default 0."),
    length: z
      .int()
      .min(1)
      .max(windowBytes)
      .optional()
      .describe(`Bytes at most, 1 to ${windowBytes} (the default).`),
    encoding: z.enum(["text", "base64"]).optional().describe("text (UTF-8, the default) or base64."),
  }),
  outputSchema: outputSchema({
    ...transferFactSchemas,
    offset: z.number().optional().describe("First byte of this window."),
    encoding: z.string().optional(),
    data: z.string().optional(),
    nextOffset: z.number().optional(),
    eof: z.boolean().optional(),
  }),
  async handler({ handle, offset = 0, length = windowBytes, encoding = "text" }, { engine, principal }) {
    const file = await engine.openOwn(principal, requireHandle(handle));
    const { sizeBytes } = file.transfer;
    if (offset > sizeBytes) {
      throw new TransferError("invalid_param", `offset: the file has ${sizeBytes} bytes.`, {
        param: "offset",
      });
    }
    const read = encoding === "text" ? readText : readBase64;
    const { data, bytes } = await read(file, offset, length);
    const nextOffset = offset + bytes;
    const eof = nextOffset === sizeBytes;
    return {
      facts: {
        ...transferFacts(file.transfer),
        offset,
        encoding,
        data,
        nextOffset,
        eof,
        nextStep: eof
          ? "This is the end of the file."
          : `For the next window call file_read with handle "${handle}", offset ${nextOffset} and encoding "${encoding}"; for the whole file call file_download.`,
      },
    };
  },
});

async function readBase64(file: OpenFile, offset: number, length: number): Promise<Window> {
  const bytes = await file.bytes(offset, Math.min(offset + length, file.transfer.sizeBytes));
  return { data: bytes.toString("base64"), bytes: bytes.length };
}

async function readText(file: OpenFile, offset: number, length: number): Promise<Window> {
  const { handle, sizeBytes } = file.transfer;
  const from = Math.max(0, offset - marginBytes);
  const bytes = await file.bytes(from, Math.min(offset + length + marginBytes, sizeBytes));
  const window = textWindow(bytes, offset - from, length);
  if (window.kind === "text") return { data: window.text, bytes: window.bytes };
  if (window.kind === "inside") {
    const start = offset - window.back;
    throw new TransferError(
      "invalid_param",
      `offset: byte ${offset} is inside the character that starts at ${start}.`,
      {
        param: "offset",
        recoveryHint: `Call file_read again with offset ${start}.`,
        repair: { tool: "file_read", arguments: { handle, offset: start, length, encoding: "text" } },
      },
    );
  }
  throw new TransferError("invalid_param", "encoding: these bytes are not UTF-8 text.", {
    param: "encoding",
    recoveryHint: "Call file_read again with encoding base64.",
    repair: { tool: "file_read", arguments: { handle, offset, length, encoding: "base64" } },
  });
}
