import { createMcpEndpoint } from "../src/mcp/endpoint.ts";
import { createLinks } from "../src/transfer/links.ts";
import { newHandle, newTicket } from "../src/transfer/identifiers.ts";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import * as z from "zod";
const handle = newHandle();
const transfer: any = { handle, principal: "local", status: "receiving", filename: "a.bin", contentType: null, metadata: null, sizeBytes: 100, offset: 5, declaredSha256: null, sha256: null, createdAt: new Date(), expiresAt: new Date(), completedAt: null, concat: "whole", bytesPerSecond: null };
const engine: any = { limits: { maxFileBytes: 2 ** 40, inlineChunkBytes: 262144, inlineFileBytes: 4194304, uploadTtlMs: 1, fileTtlMs: null, downloadTtlMs: 1 }, status: async () => transfer, create: async () => ({ transfer, ticket: newTicket(), created: true }) };
const endpoint = createMcpEndpoint({ engine, links: createLinks("http://127.0.0.1:8484"), principalOf: () => "local", allowedHosts: [], allowedOrigins: [], log: (e) => console.error(e), serverInfo: { name: "longshore", version: "0.1.0" } });
const bare = createMcpHandler(() => {
  const s = new McpServer({ name: "x", version: "1" });
  s.registerTool("upload_status", { description: "d", inputSchema: z.object({ handle: z.string() }) }, async () => { const f = { handle, status: "receiving", offset: 5 }; return { content: [{ type: "text", text: JSON.stringify(f) }], structuredContent: f }; });
  return s;
});
const shared = z.object({ handle: z.string() });
const bare8 = createMcpHandler(() => {
  const s = new McpServer({ name: "x", version: "1" });
  for (const n of ["upload_status", "a", "b", "c", "d", "e", "f", "g"]) s.registerTool(n, { description: "d", inputSchema: shared, outputSchema: z.looseObject({ status: z.string() }) }, async () => { const f = { handle, status: "receiving", offset: 5 }; return { content: [{ type: "text", text: JSON.stringify(f) }], structuredContent: f }; });
  return s;
});
const modern = (method: string, params: any, name?: string) => () => new Request("http://127.0.0.1:8484/mcp", { method: "POST", headers: { host: "127.0.0.1:8484", "content-type": "application/json", accept: "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28", "mcp-method": method, ...(name && { "mcp-name": name }) }, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/clientInfo": { name: "b", version: "1" } } } }) });
const legacy = (method: string, params: any) => () => new Request("http://127.0.0.1:8484/mcp", { method: "POST", headers: { host: "127.0.0.1:8484", "content-type": "application/json", accept: "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25" }, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) });
async function run(name: string, fetch: (r: Request) => Promise<Response>, make: () => Request, n = 4000) {
  const one = await (await fetch(make())).text();
  if (process.env.SHOW) console.log(one.slice(0, 600));
  for (let i = 0; i < 500; i++) await (await fetch(make())).text();
  const t = performance.now();
  for (let i = 0; i < n; i += 16) await Promise.all(Array.from({ length: 16 }, async () => (await fetch(make())).text()));
  const s = (performance.now() - t) / 1000;
  console.log(name.padEnd(40), Math.round(n / s), "/s");
}
const call = { name: "upload_status", arguments: { handle } };
for (let k = 0; k < 2; k++) {
await run("ours modern tools/call", endpoint.fetch, modern("tools/call", call, "upload_status"));
await run("bare McpServer 1 tool modern", (r) => bare.fetch(r), modern("tools/call", call, "upload_status"));
await run("bare McpServer 8 tools modern", (r) => bare8.fetch(r), modern("tools/call", call, "upload_status"));
await run("ours legacy tools/call", endpoint.fetch, legacy("tools/call", call));
await run("bare 1 legacy", (r) => bare.fetch(r), legacy("tools/call", call));
await run("bare 8 legacy", (r) => bare8.fetch(r), legacy("tools/call", call));
await run("ours modern tools/list", endpoint.fetch, modern("tools/list", {}));
await run("bare8 modern tools/list", (r) => bare8.fetch(r), modern("tools/list", {}));
}
await run("request creation only", async (r) => new Response(await r.text()), modern("tools/call", call, "upload_status"));
