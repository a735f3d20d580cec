/**
 * A server on stdin and stdout (v1 SDK) with one long job: `generate-report` writes a report section by section, asks a question in
 * the middle, and stores the report as a file. Kill it whenever you like: the next start goes on where it was, with the sections that are
 * written and the question that is open.
 *
 *     node examples/report-generator/main.ts [DATA_DIR]
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { asToolRegistrar, openStore, withFileTransfer, withTasks } from "longshore";
import * as z from "zod";
import { introduction, writeSection } from "./writing.ts";

const store = await openStore(process.argv[2] ?? "./storage/report-generator");

// The bytes of the reports go over HTTP, past the model.
const http = createServer();
await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
const { port } = http.address() as AddressInfo;

const mcp = new McpServer({ name: "report-generator", version: "1.0.0" });
const registrar = asToolRegistrar(mcp);
const files = withFileTransfer(registrar, { store, publicUrl: `http://127.0.0.1:${port}` });
const tasks = withTasks(registrar, { store });
http.on("request", getRequestListener(files.app.fetch));

tasks.taskTool(
  "generate-report",
  {
    title: "Generate a report",
    description:
      "Writes a report on a topic, section by section. Takes a while and asks one question on the way; the result has the handle of the report.",
    inputSchema: {
      topic: z.string().min(1).max(200),
      sections: z.number().int().min(1).max(50).default(4),
    },
    outputSchema: { handle: z.string(), sections: z.number(), words: z.number() },
    // Nothing outside happens before the first step, so a run that had not come to it may begin again.
    restart: "whole",
  },
  async ({ topic, sections }, ctx) => {
    const half = Math.ceil(sections / 2);
    const written: string[] = [];
    let tone = "plain";
    for (let number = 1; number <= sections; number += 1) {
      // Recorded when it is done: after a crash it is read from the record and not written again.
      written.push(await ctx.step(`section ${number}`, () => writeSection(topic, number, tone, ctx.signal)));
      await ctx.progress(`Section ${number} of ${sections} is written`, number / (sections + 1));
      if (number === half) {
        const answer = await ctx.needInput({
          prompt: `${number} of ${sections} sections on ${topic} are written. How shall the rest sound?`,
          choices: ["plain", "formal"],
        });
        tone = String(answer);
      }
    }
    const text = [introduction(topic), ...written].join("\n");
    const { handle } = await ctx.files.write("report.md", text, { contentType: "text/markdown" });
    return { handle, sections, words: text.split(/\s+/).length };
  },
);

await mcp.connect(new StdioServerTransport());

// The host closes the pipe to end the server: what runs is left for the next start.
process.stdin.once("end", async () => {
  await mcp.close();
  await store.close();
  http.close();
  http.closeAllConnections();
});
