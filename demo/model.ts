/** The model's side: an MCP client that calls tools over Streamable HTTP and sees nothing but their results. */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

export interface Model {
  call(tool: string, args: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>>;
  close(): Promise<void>;
}

export async function connectModel(mcpUrl: string): Promise<Model> {
  const client = new Client(
    { name: "longshore-demo", version: "1.0.0" },
    { versionNegotiation: { mode: "auto" } },
  );
  await client.connect(new StreamableHTTPClientTransport(new URL(mcpUrl)));
  return {
    call: async (tool, args) => {
      const result = await client.callTool({ name: tool, arguments: args });
      const facts = (result.structuredContent ?? {}) as Record<string, unknown>;
      if (result.isError === true) throw new Error(`${tool} failed: ${JSON.stringify(facts)}`);
      return facts;
    },
    close: () => client.close(),
  };
}
