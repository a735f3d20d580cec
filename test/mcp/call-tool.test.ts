import { afterEach, expect, test, vi } from "vitest";
import * as z from "zod";
import { callTool } from "../../src/mcp/call-tool.ts";
import { outputSchema } from "../../src/mcp/output-schema.ts";
import { defineTool, type ToolContext, type ToolDefinition } from "../../src/mcp/tool-definition.ts";

const context = { principal: "local", requestId: "r1", signal: new AbortController().signal } as ToolContext;

function toolThat(handler: ToolDefinition["handler"]): ToolDefinition {
  const hints = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };
  const inputSchema = z.object({ handle: z.string().optional() });
  return defineTool({
    name: "t",
    title: "T",
    description: "",
    annotations: hints,
    inputSchema,
    outputSchema: outputSchema(),
    handler,
  });
}

afterEach(() => vi.useRealTimers());

test("a handler that never answers is given up after 45 s, with a hint that leads on", async () => {
  vi.useFakeTimers();
  const result = callTool(
    toolThat(() => new Promise(() => {})),
    {},
    context,
    () => {},
  );
  await vi.advanceTimersByTimeAsync(45_000);
  expect(await result).toMatchObject({
    isError: true,
    structuredContent: {
      status: "failed",
      error: { code: "storage_unavailable", retryable: true, retryAfterSeconds: 5 },
    },
  });
});

test("a handler that answers leaves no timer behind", async () => {
  vi.useFakeTimers();
  await callTool(
    toolThat(async () => ({ facts: { status: "ok", nextStep: "Nothing." } })),
    {},
    context,
    () => {},
  );
  expect(vi.getTimerCount()).toBe(0);
});

test.each([new Error("a secret"), "a string", undefined, { code: 5 }, new TypeError("x")])(
  "%o thrown is an internal error without the inside",
  async (thrown) => {
    const faults: unknown[] = [];
    const tool = toolThat(async () => {
      throw thrown;
    });
    const result = await callTool(tool, {}, context, (error) => faults.push(error.cause));
    expect(result.structuredContent).toMatchObject({
      error: { code: "internal_error", requestId: "r1", retryable: false },
    });
    expect(JSON.stringify(result)).not.toContain("secret");
    expect(faults).toEqual([thrown]);
  },
);
