/** Failures of a user's own tools, in the form that all others have. */
import { asTransferError } from "../errors.ts";
import { errorResult, type ToolResult } from "../mcp/call-tool.ts";

/**
 * What was thrown as the result of a failed tool call: `{status: "failed", error: {code, message, retryable, recoveryHint, …}}` as text and as
 * structured content, with `isError`. What is no {@link TransferError} becomes `internal_error` and says nothing of the inside.
 *
 * @example
 * mcp.registerTool("count-lines", config, async ({ handle }, ctx) => {
 *   try {
 *     return { content: [{ type: "text", text: String(await countLines(await files.open(handle, ctx))) }] };
 *   } catch (error) {
 *     return toolError(error);
 *   }
 * });
 */
export function toolError(thrown: unknown, requestId: string = crypto.randomUUID()): ToolErrorResult {
  const { content, structuredContent } = errorResult(asTransferError(thrown), requestId);
  return { content: [...content], structuredContent: { ...structuredContent }, isError: true };
}

/**
 * `CallToolResult` of both SDKs; from {@link toolError}.
 *
 * @example
 * const result: ToolErrorResult = toolError(new TransferError("forbidden", "Not today."));
 */
export interface ToolErrorResult {
  // Mutable, and open: so the types of both SDKs have it.
  content: ToolResult["content"][number][];
  structuredContent: Record<string, unknown>;
  isError: true;
  [member: string]: unknown;
}
