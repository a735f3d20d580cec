import { McpServer } from "@modelcontextprotocol/server";
import * as z from "zod";
import { openStore, asToolRegistrar, withTasks, withFileTransfer } from "/work/main/src/index.ts";
const store = await openStore({ dataDir: "/tmp/perfstore", minFreeBytes: 0 });
const handler = async () => 1;
for (const mode of ["bare", "tasks", "tasks+files", "tasks+files+1"]) {
  const t = performance.now();
  for (let i = 0; i < 500; i++) {
    const mcp = new McpServer({ name: "s", version: "1" });
    if (mode === "bare") continue;
    const r = asToolRegistrar(mcp);
    const tasks = withTasks(r, { store });
    if (mode !== "tasks") withFileTransfer(r, { store, publicUrl: "http://127.0.0.1:1" });
    if (mode.endsWith("1")) tasks.taskTool("x", { description: "d", inputSchema: { a: z.string(), b: z.number().default(1) } }, handler);
  }
  console.log(mode, ((performance.now() - t) / 500).toFixed(3), "ms");
}
await store.close();
