/**
 * The tools are values apart from any SDK: the `McpServer` of either generation can offer them by `registerTool`, with the same list and
 * the same answers.
 */
import { Client as ClientV2, InMemoryTransport as InMemoryV2 } from "@modelcontextprotocol/client";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport as InMemoryV1 } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer as McpServerV1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import { McpServer as McpServerV2 } from "@modelcontextprotocol/server";
import { expect, test } from "vitest";
import * as z from "zod";
import { callTool, type ToolResult } from "../../src/mcp/call-tool.ts";
import { listTool } from "../../src/mcp/listing.ts";
import type { ToolDefinition } from "../../src/mcp/tool-definition.ts";
import { fileTools } from "../../src/mcp/tools/file-tools.ts";
import { createLinks } from "../../src/transfer/links.ts";
import { openTestStore } from "../support/engine.ts";

type Register = (name: string, config: object, call: (args: unknown) => Promise<ToolResult>) => unknown;

/** Takes every object, and is listed as the schema of the tool: so that the SDK shows the arguments and leaves their check to us. */
function offer(register: Register, tool: ToolDefinition, call: (args: unknown) => Promise<ToolResult>): void {
  const { name, inputSchema, ...rest } = listTool(tool);
  register(
    name,
    { ...rest, inputSchema: z.looseObject({}).meta(inputSchema), outputSchema: tool.outputSchema },
    call,
  );
}

async function pair(generation: "v1" | "v2") {
  const { transfers: engine } = await openTestStore();
  const context = {
    principal: "local",
    signal: new AbortController().signal,
    requestId: "r",
    engine,
    links: createLinks("http://127.0.0.1:8484"),
  };
  const server =
    generation === "v1"
      ? new McpServerV1({ name: "s", version: "1" })
      : new McpServerV2({ name: "s", version: "1" });
  const register = server.registerTool.bind(server) as Register;
  for (const tool of fileTools) offer(register, tool, (args) => callTool(tool, args, context, () => {}));
  if (server instanceof McpServerV1) {
    const [ours, theirs] = InMemoryV1.createLinkedPair();
    const client = new ClientV1({ name: "c", version: "1" });
    await Promise.all([server.connect(theirs), client.connect(ours)]);
    return client;
  }
  const [ours, theirs] = InMemoryV2.createLinkedPair();
  const client = new ClientV2({ name: "c", version: "1" });
  await Promise.all([server.connect(theirs), client.connect(ours)]);
  return client;
}

test.each(["v1", "v2"] as const)(
  "the McpServer of %s lists the schemas of the tools, and passes arguments and failures on",
  async (generation) => {
    const client = await pair(generation);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(fileTools.map(({ name }) => name));
    for (const [index, tool] of tools.entries()) {
      const { inputSchema } = listTool(fileTools[index] ?? fail());
      expect(tool.inputSchema).toMatchObject(inputSchema);
      expect(tool.annotations).toEqual(fileTools[index]?.annotations);
      expect(tool.outputSchema).toMatchObject({ type: "object", required: ["status"] });
    }

    const created = await client.callTool({ name: "upload_create", arguments: { filename: "a", size: 3 } });
    expect(created.structuredContent).toMatchObject({ status: "receiving", size: 3 });
    const wrong = await client.callTool({ name: "upload_create", arguments: { filename: 5 } });
    expect(wrong).toMatchObject({
      isError: true,
      structuredContent: { status: "failed", error: { code: "invalid_param", param: "filename" } },
    });
    const path = await client.callTool({ name: "file_read", arguments: { handle: "/home/me/x.bin" } });
    expect(path).toMatchObject({
      isError: true,
      structuredContent: { error: { code: "client_path_not_reachable" } },
    });
  },
);

function fail(): never {
  throw new Error("no such tool");
}
