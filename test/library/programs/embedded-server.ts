/**
 * A server with Longshore in it: `node embedded-server.ts v1|v2 stdio|http DATA_DIR`. Over HTTP it tells its URL on stdout; on stdio only
 * its files are reached over HTTP.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { McpServer as McpServerV1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { createMcpHandler, McpServer as McpServerV2 } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { Hono } from "hono";
import { openStore } from "../../../src/index.ts";
import { equip } from "./tools.ts";

const [generation, transport, dataDir = ""] = process.argv.slice(2);
const info = { name: "embedding", version: "1.0.0" };

const store = await openStore({ dataDir, minFreeBytes: 0 });
const http = createServer();
await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
const { port } = http.address() as AddressInfo;
const base = `http://127.0.0.1:${port}`;
const publicUrl = `${base}/transfer`;

const v1 = () => {
  const mcp = new McpServerV1(info);
  return { mcp, files: equip(mcp, store, publicUrl) };
};
const v2 = () => {
  const mcp = new McpServerV2(info);
  return { mcp, files: equip(mcp, store, publicUrl) };
};

const app = new Hono();
const files = generation === "v1" ? v1().files : v2().files;
app.route("/transfer", files.app);
if (transport === "http" && generation === "v1")
  app.all("/mcp", async (c) => {
    const { mcp } = v1();
    const connection = new WebStandardStreamableHTTPServerTransport();
    await mcp.connect(connection);
    return connection.handleRequest(c.req.raw);
  });
if (transport === "http" && generation === "v2") {
  const handler = createMcpHandler(() => v2().mcp);
  app.all("/mcp", (c) => handler.fetch(c.req.raw));
}
http.on("request", getRequestListener(app.fetch));

if (transport === "http") process.stdout.write(`${base}/mcp\n`);
else if (generation === "v1") await v1().mcp.connect(new StdioServerTransport());
else serveStdio(() => v2().mcp);

const stop = async (): Promise<void> => {
  await store.close();
  http.close();
  http.closeAllConnections();
};
if (transport === "stdio") process.stdin.once("end", () => void stop());
process.once("SIGTERM", () => void stop());
