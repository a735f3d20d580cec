/** What a server of the SDK is built for, and what its calls are given. */
import type { Result, ServerContext, Tool } from "@modelcontextprotocol/server";
import type { TransferError } from "../errors.ts";
import type { ToolContext } from "./tool-definition.ts";

/** A request, or a connection. */
export interface Served {
  readonly era: "legacy" | "modern";
  /** `Mcp-Method` of a request over HTTP; left out on a connection. */
  readonly mcpMethod?: string | null;
  contextOf(context: ServerContext): ToolContext;
  /** Runs a call; the server's life is to last until it has ended. */
  run<T>(call: () => Promise<T>): Promise<T>;
  /** Told of what has no code of its own, for the log. */
  onFault(error: TransferError, tool?: string): void;
}

/** A call as it came, for a tool that answers in the protocol's own terms. */
export interface Call {
  readonly args: unknown;
  readonly context: ServerContext;
  readonly served: Served;
}

/** A tool that makes its results itself, of whatever form the protocol has. */
export interface ProtocolTool {
  readonly listed: Tool;
  call(call: Call): Promise<Result> | Result;
}
