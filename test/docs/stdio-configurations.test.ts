/** The configurations in the README by which desktop programs start the server work as they stand, but for the paths. */
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { expect, onTestFinished, test } from "vitest";
import { cleanEnv } from "../support/built-server.ts";
import { codeBlocks, page, section } from "../support/markdown.ts";
import { tempDir } from "../support/temp-dir.ts";

const root = fileURLToPath(new URL("../../", import.meta.url)).replace(/\/$/, "");
const part = section(page("README.md"), "### Started by the client");

interface Entry {
  readonly command: string;
  readonly args: string[];
}

test.each([
  ...codeBlocks(part, "jsonc").map((block) => {
    const [servers = {}] = Object.values(JSON.parse(block) as Record<string, Record<string, Entry>>);
    return [Object.keys(servers)[0], servers.longshore] as const;
  }),
  ...codeBlocks(part, "sh").map((block) => {
    const [command = "", ...args] = block.trim().split(" -- ")[1]?.split(" ") ?? [];
    return ["longshore", { command, args }] as const;
  }),
])("%s %j starts a server with tools", async (_name, entry) => {
  const dataDir = await tempDir();
  const args = (entry?.args ?? []).map((arg) =>
    arg.replace("/path/to/longshore", root).replace(/^(?:\/path\/to\/data|~\/longshore)$/, dataDir),
  );
  expect(entry?.command).toBe("node");
  const transport = new StdioClientTransport({
    command: process.execPath,
    args,
    env: cleanEnv() as Record<string, string>,
  });
  const client = new Client({ name: "c", version: "1" });
  await client.connect(transport);
  onTestFinished(() => client.close());
  expect((await client.listTools()).tools).toHaveLength(16);
});
