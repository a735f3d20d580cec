/** Calls the tools of a running server, in the stateless form of MCP 2026-07-28: one POST for a call. */
import { packageVersion } from "../server/version.ts";
import { CommandError } from "./command-context.ts";
import type { RemoteContext } from "./remote-context.ts";

const protocolVersion = "2026-07-28";

/** `error` of a failed call, as the server told it. */
export class ToolFailure extends Error {
  override readonly name = "ToolFailure";
  readonly error: { readonly [member: string]: unknown };
  constructor(error: { readonly [member: string]: unknown }) {
    super(typeof error.message === "string" ? error.message : "The call failed.");
    this.error = error;
  }
}

export type Facts = { readonly [fact: string]: unknown };

/** @throws ToolFailure, or CommandError where there is no such server. */
export async function callTool(
  { url, key, signal }: RemoteContext,
  name: string,
  args: Facts,
): Promise<Facts> {
  const meta = "io.modelcontextprotocol";
  const body = {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: {
      name,
      arguments: args,
      _meta: {
        [`${meta}/protocolVersion`]: protocolVersion,
        [`${meta}/clientInfo`]: { name: "longshore-cli", version: packageVersion() },
        [`${meta}/clientCapabilities`]: {},
      },
    },
  };
  let response: Response;
  try {
    response = await fetch(`${url}/mcp`, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        Accept: "application/json, text/event-stream",
        "MCP-Protocol-Version": protocolVersion,
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
        ...(key !== null && { Authorization: `Bearer ${key}` }),
      },
      body: JSON.stringify(body),
      signal,
    });
  } catch (error) {
    signal.throwIfAborted();
    throw unreachable(url, error);
  }
  return factsIn(await messageIn(response, url));
}

function unreachable(url: string, error: unknown): CommandError {
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : "";
  return new CommandError(
    `No server answers at ${url}${cause}. Start one with 'longshore serve', or name another with LONGSHORE_URL.`,
  );
}

interface Message {
  readonly result?: { readonly isError?: boolean; readonly structuredContent?: Facts };
  readonly error?: { readonly message?: string; readonly data?: unknown };
}

/** The answer comes as JSON, or as the last event of a stream. */
async function messageIn(response: Response, url: string): Promise<Message> {
  const text = await response.text();
  const data = text.startsWith("{") ? text : text.split("\n").findLast((line) => line.startsWith("data:"));
  try {
    return JSON.parse((data ?? "").replace(/^data:/, "")) as Message;
  } catch {
    throw new CommandError(`What answers at ${url}/mcp (status ${response.status}) is no MCP server.`);
  }
}

function factsIn({ result, error }: Message): Facts {
  const facts = result?.structuredContent;
  if (facts !== undefined && result?.isError !== true) return facts;
  const told = facts?.error ?? error?.data ?? { message: error?.message };
  throw new ToolFailure(
    typeof told === "object" && told !== null ? { ...told } : { message: error?.message },
  );
}
