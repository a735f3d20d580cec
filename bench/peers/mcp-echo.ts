/** Peer for MCP: a bare server of the same SDK with one tool, `echo`, that gives its text back. */
import { serve } from "@hono/node-server";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

const [port = "0"] = process.argv.slice(2);

const handler = createMcpHandler(() => {
  const server = new McpServer({ name: "echo", version: "1.0.0" });
  server.registerTool(
    "echo",
    { description: "Gives the text back.", inputSchema: z.object({ text: z.string() }) },
    ({ text }) => ({ content: [{ type: "text", text }] }),
  );
  return server;
});

serve({ fetch: (request) => handler.fetch(request), hostname: "127.0.0.1", port: Number(port) });
