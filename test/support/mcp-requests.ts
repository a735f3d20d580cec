/** Single requests to an MCP endpoint, by hand, for what a client library would not send or would not show. */

export interface RpcAnswer {
  readonly httpStatus: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look at results of every method, and an expectation follows each
  readonly result?: any;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

export const tasksExtension = { extensions: { "io.modelcontextprotocol/tasks": {} } };

type Params = Record<string, unknown>;
type Fields = Record<string, string>;

const common = { "Content-Type": "application/json", Accept: "application/json, text/event-stream" };
let lastId = 0;

/** A request of 2026-07-28 from a client with these capabilities. */
export function modernInit(
  method: string,
  params: Params,
  capabilities: object = {},
  headers: Fields = {},
): RequestInit {
  const name = params.name ?? params.taskId;
  lastId += 1;
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": capabilities,
  };
  return {
    method: "POST",
    headers: {
      ...common,
      "MCP-Protocol-Version": "2026-07-28",
      "Mcp-Method": method,
      ...(typeof name === "string" && { "Mcp-Name": name }),
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: lastId, method, params: { ...params, _meta } }),
  };
}

export async function modern(
  url: string,
  method: string,
  params: Params = {},
  capabilities: object = {},
  headers: Fields = {},
): Promise<RpcAnswer> {
  return answerOf(await fetch(url, modernInit(method, params, capabilities, headers)));
}

/** A request of 2025-11-25. */
export async function legacy(
  url: string,
  method: string,
  params: Params = {},
  headers: Fields = {},
): Promise<RpcAnswer> {
  lastId += 1;
  const init = {
    method: "POST",
    headers: { ...common, "MCP-Protocol-Version": "2025-11-25", ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", id: lastId, method, params }),
  };
  return answerOf(await fetch(url, init));
}

async function answerOf(response: Response): Promise<RpcAnswer> {
  const text = await response.text();
  const json = text.startsWith("{")
    ? text
    : (text
        .match(/^data: (.+)$/gm)
        ?.at(-1)
        ?.slice(6) ?? "null");
  const { result, error } = JSON.parse(json) as Omit<RpcAnswer, "httpStatus">;
  return {
    httpStatus: response.status,
    ...(result !== undefined && { result }),
    ...(error !== undefined && { error }),
  };
}
