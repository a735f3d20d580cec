/**
 * An HTTP server (v2 SDK) whose own tool works on files of any size: the model passes a handle, and the tool reads the file here. A
 * server is built for each request; files, tasks and limits belong to the one store.
 *
 *     node examples/large-file-server/main.ts [DATA_DIR] [PORT]
 */
import { serve } from "@hono/node-server";
import {
  createMcpHandler,
  hostHeaderValidationResponse,
  McpServer,
  originValidationResponse,
} from "@modelcontextprotocol/server";
import { Hono } from "hono";
import { asToolRegistrar, openStore, toolError, withFileTransfer } from "longshore";
import * as z from "zod";
import { lineStatistics } from "./line-statistics.ts";

const [dataDir = "./storage/large-file-server", port = "3000"] = process.argv.slice(2);
const hostname = "127.0.0.1";
const publicUrl = `http://${hostname}:${port}/transfer`;

const store = await openStore(dataDir);

function buildServer() {
  const mcp = new McpServer({ name: "large-file-server", version: "1.0.0" });
  const files = withFileTransfer(asToolRegistrar(mcp), { store, publicUrl });

  mcp.registerTool(
    "line-statistics",
    {
      title: "Statistics of a text file",
      description:
        "Counts lines and finds the longest one in an uploaded text file, however large. Takes the handle from upload_create; never a path.",
      inputSchema: z.object({ handle: z.string() }),
    },
    async ({ handle }, ctx) => {
      try {
        // Only the caller's own files are found: ctx says who that is.
        const file = await files.open(handle, ctx);
        const statistics = await lineStatistics(file.stream());
        return { content: [{ type: "text", text: JSON.stringify(statistics) }] };
      } catch (error) {
        // Says to the model what is wrong and what to do, as the other tools do.
        return toolError(error);
      }
    },
  );
  return { mcp, files };
}

const app = new Hono();
const handler = createMcpHandler(() => buildServer().mcp);
// A page on the web can point its own name at this machine; the app of the files has the same guards of its own.
const hosts = [hostname, "localhost"];
app.all("/mcp", (c) => {
  const request = c.req.raw;
  const refused = hostHeaderValidationResponse(request, hosts) ?? originValidationResponse(request, hosts);
  return refused ?? handler.fetch(request);
});
app.route("/transfer", buildServer().files.app);

const server = serve({ fetch: app.fetch, hostname, port: Number(port) }, () =>
  console.log(`MCP URL: http://${hostname}:${port}/mcp`),
);

for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, async () => {
    server.close();
    await handler.close();
    await store.close();
  });
