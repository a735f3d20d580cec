/** What somebody's project does with the installed package: run there, and checked by its own compiler. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Client } from "@modelcontextprotocol/client";
import { McpServer as McpServerV1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import { InMemoryTransport, McpServer } from "@modelcontextprotocol/server";
import {
  asToolRegistrar,
  openStore,
  type Store,
  TransferError,
  withFileTransfer,
  withTasks,
} from "longshore";
import { downloadBlob, upload } from "longshore/client";
import { type FileTransfer, toolError } from "longshore/files";
import type { TaskContext, Tasks } from "longshore/tasks";
import * as z from "zod";
import * as zodV3 from "zod/v3";

const store: Store = await openStore({ dataDir: "./storage", minFreeBytes: 0 });
const http = createServer();
await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
const publicUrl = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;

const mcp = new McpServer({ name: "consumer", version: "1.0.0" });
const files: FileTransfer = withFileTransfer(asToolRegistrar(mcp), { store, publicUrl });
const tasks: Tasks = withTasks(asToolRegistrar(mcp), { store });
interface Counted {
  readonly lines: number;
}
const count = async (ctx: TaskContext, handle: string): Promise<Counted> => {
  const file = await ctx.files.open(handle);
  let lines = 0;
  for await (const piece of file.stream()) lines += String(piece).split("\n").length - 1;
  return { lines };
};
tasks.taskTool(
  "count-lines",
  {
    description: "Counts the lines of a file.",
    inputSchema: { handle: z.string(), factor: z.number().default(1) },
    outputSchema: z.object({ lines: z.number() }),
  },
  async ({ handle, factor }, ctx) => {
    const { lines } = await ctx.step("count", () => count(ctx, handle));
    return { lines: lines * factor };
  },
);
mcp.registerTool("size", { inputSchema: z.object({ handle: z.string() }) }, async ({ handle }, ctx) => {
  try {
    const { transfer } = await files.open(handle, ctx);
    return { content: [{ type: "text", text: String(transfer.sizeBytes) }] };
  } catch (error) {
    return toolError(error);
  }
});

// The v1 server and schemas of zod 3 are taken as they are.
const old = new McpServerV1({ name: "consumer", version: "1.0.0" });
withTasks(asToolRegistrar(old), { store }).taskTool(
  "refuse",
  { description: "Refuses.", inputSchema: { why: zodV3.string() } },
  ({ why }) => {
    throw new TransferError("forbidden", why.toUpperCase());
  },
);
old.registerTool("fails", { inputSchema: { handle: z.string() } }, async ({ handle }, extra) => {
  const opened = await files.open(handle, extra).catch(toolError);
  return "isError" in opened ? opened : { content: [] };
});

// A fetch server in front of the Hono app, as any framework has one.
http.on("request", async (incoming, outgoing) => {
  const body = incoming.method === "GET" || incoming.method === "HEAD" ? null : incoming;
  const response = await files.app.fetch(
    new Request(`${publicUrl}${incoming.url}`, {
      method: incoming.method ?? "GET",
      headers: Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]),
      ...(body !== null && { body: body as never, duplex: "half" }),
    } as RequestInit),
  );
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.end(Buffer.from(await response.arrayBuffer()));
});

const [ours, theirs] = InMemoryTransport.createLinkedPair();
const client = new Client({ name: "c", version: "1" });
await Promise.all([mcp.connect(theirs), client.connect(ours as never)]);
const call = async (name: string, args: Record<string, unknown>) => {
  const { structuredContent, content } = await client.callTool({ name, arguments: args });
  return (structuredContent ?? content) as Record<string, unknown>;
};

const created = await call("upload_create", { filename: "a.txt", size: 4 });
const { put } = created.upload as { put: string };
const stored = await upload(put, new Blob(["a\nb\n"]));
const started = await call("count-lines", { handle: stored.handle, factor: 10 });
const done = await call("durable_task_get", { taskId: started.taskId, waitMs: 20_000 });
const { url } = await call("file_download", { handle: stored.handle });
const { blob } = await downloadBlob(String(url));
const size = await call("size", { handle: stored.handle });
console.log(JSON.stringify({ result: done.result, text: await blob.text(), size }));

await client.close();
await store.close();
http.close();
http.closeAllConnections();
