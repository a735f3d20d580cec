import { createHash } from "node:crypto";
import * as z from "zod";
import type { PrefixDigest, Transfer } from "../../transfer/engine.ts";
import { handleArgument, requireHandle } from "../handle-argument.ts";
import { outputSchema, sha256Fact, transferFactSchemas } from "../output-schema.ts";
import { defineTool } from "../tool-definition.ts";
import { nextStepFor, transferFacts } from "../transfer-facts.ts";

/** What is left for a prefix digest, of the 45 s that a call may take, after the longest wait. */
const callBudgetMs = 43_000;

const emptyPrefix: PrefixDigest = { bytes: 0, sha256: createHash("sha256").digest("hex") };

export const uploadStatus = defineTool({
  name: "upload_status",
  title: "Status of an upload",
  description: `For large uploads wait here instead of asking again and again: with waitMs 40000 the call returns as soon as the status changes, or after that time.
Tells the offset (bytes received), the size, speed and time left while bytes flow, and the sha256 once complete. Never disturbs a running upload.
With prefixDigest true it also tells the sha256 of the bytes received so far, to compare with the start of your file before resuming.
Status is receiving, verifying, complete, mismatch (all bytes are here, but the sha256 is wrong) or expired.`,
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  inputSchema: z.object({
    handle: handleArgument,
    waitMs: z
      .int()
      .min(0)
      .max(40_000)
      .optional()
      .describe("Wait up to this many milliseconds for a change of status; 40000 at most."),
    prefixDigest: z.boolean().optional().describe("Also tell the sha256 of the bytes received so far."),
  }),
  outputSchema: outputSchema({
    ...transferFactSchemas,
    filename: z.string().optional(),
    sha256: sha256Fact,
    bytesPerSecond: z.number().optional(),
    secondsLeft: z.number().optional(),
    prefix: z.looseObject({ bytes: z.number().optional(), sha256: z.string().optional() }).optional(),
  }),
  async handler({ handle, waitMs, prefixDigest }, context) {
    const { engine, principal } = context;
    const startMs = performance.now();
    const id = requireHandle(handle);
    let transfer = await engine.status(principal, id);
    // Everything else changes only when the caller does something: to wait for it would be a wait for oneself.
    if (waitMs !== undefined && /^(?:receiving|verifying)$/.test(transfer.status))
      transfer = await engine.status(principal, id, { waitMs, signal: context.signal });
    const facts = {
      ...transferFacts(transfer),
      ...(transfer.filename !== null && { filename: transfer.filename }),
      ...(transfer.status === "complete" && transfer.sha256 !== null && { sha256: transfer.sha256 }),
      ...pace(transfer),
      ...(transfer.completedAt !== null && { completedAt: transfer.completedAt.toISOString() }),
    };
    if (prefixDigest !== true) return { facts: { ...facts, nextStep: nextStepFor(transfer) } };
    const leftMs = callBudgetMs - (performance.now() - startMs);
    const prefix = transfer.offset === 0 ? emptyPrefix : await engine.prefixDigest(principal, id, leftMs);
    return { facts: { ...facts, prefix, nextStep: nextStepFor(transfer) } };
  },
});

function pace({ bytesPerSecond, sizeBytes, offset }: Transfer): {
  bytesPerSecond?: number;
  secondsLeft?: number;
} {
  if (bytesPerSecond === null) return {};
  return {
    bytesPerSecond: Math.round(bytesPerSecond),
    ...(sizeBytes !== null &&
      bytesPerSecond > 0 && { secondsLeft: Math.ceil((sizeBytes - offset) / bytesPerSecond) }),
  };
}
