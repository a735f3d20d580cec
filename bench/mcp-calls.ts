/**
 * Tool calls: made by the official client, which is also how the raw client learns what such a call looks like on the wire. What it
 * sends for a call is recorded once and then repeated as text.
 */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { requestHead } from "./http-text.ts";

export type Era = "2026-07-28" | "2025-11-25";

export interface RecordedCall {
  /** The whole request. */
  readonly text: string;
  readonly structuredContent: unknown;
}

export async function recordCall(
  port: number,
  era: Era,
  tool: string,
  args: Record<string, unknown>,
): Promise<RecordedCall> {
  let text: string | null = null;
  const transport = new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`), {
    fetch: (url, init) => {
      const body = typeof init?.body === "string" ? init.body : "";
      if (body.includes('"tools/call"')) {
        const fields = Object.fromEntries(new Headers(init?.headers).entries());
        text = requestHead("POST", "/mcp", { ...fields, "Content-Length": Buffer.byteLength(body) }) + body;
      }
      return fetch(url, init);
    },
  });
  const client = new Client(
    { name: "bench", version: "1.0.0" },
    { versionNegotiation: { mode: era === "2026-07-28" ? { pin: era } : "legacy" } },
  );
  await client.connect(transport);
  try {
    const result = await client.callTool({ name: tool, arguments: args });
    if (result.isError === true) throw new Error(`${tool} failed: ${JSON.stringify(result.content)}`);
    if (text === null) throw new Error(`${tool} was called in a way that was not seen`);
    return { text, structuredContent: result.structuredContent };
  } finally {
    await client.close();
  }
}
