/** MCP clients of both generations of the SDK, as tests use them: against any server, built or in this process. */
import {
  Client as ClientV2,
  StreamableHTTPClientTransport as TransportV2,
} from "@modelcontextprotocol/client";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as TransportV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { expect, onTestFinished } from "vitest";

interface CallResult {
  readonly isError: boolean;
  readonly facts: Facts;
  /** Types of the content items. */
  readonly content: readonly { readonly type: string; readonly [member: string]: unknown }[];
}

/** What the tools tell, as tests read it; a fact that is missing reads as undefined and fails the expectation. */
export interface Facts {
  readonly handle: string;
  readonly status: string;
  readonly offset: number;
  readonly size?: number;
  readonly sha256?: string;
  readonly nextStep: string;
  readonly error: {
    readonly code: string;
    readonly message: string;
    readonly retryable: boolean;
    readonly recoveryHint: string;
    readonly param?: string;
    readonly partial?: { readonly cursor: number };
    readonly repair?: { readonly tool: string; readonly arguments: Record<string, unknown> };
    readonly retryAfterSeconds?: number;
    readonly requestId?: string;
    readonly upload?: { readonly put: string };
    readonly commands?: { readonly curl: string };
  };
  readonly upload: { readonly tus: string; readonly put: string; readonly deferredLength?: boolean };
  readonly commands: { readonly curl: string };
  // biome-ignore lint/suspicious/noExplicitAny: tests look at facts of every tool, and an expectation follows each
  readonly [fact: string]: any;
}

export interface TestClient {
  call(name: string, args?: Record<string, unknown>): Promise<CallResult>;
  tools(): Promise<readonly { readonly name: string; readonly [member: string]: unknown }[]>;
  server(): {
    readonly name?: string;
    readonly version?: string;
    readonly instructions?: string;
    readonly protocol?: string;
  };
}

export const clientKinds = ["a client of 2026-07-28", "a client of 2025-11-25"] as const;
export type ClientKind = (typeof clientKinds)[number];

/** Connected, and knowing the list of tools, so that it checks results against their schemas. */
export function connect(
  kind: ClientKind,
  url: string,
  headers: Record<string, string> = {},
): Promise<TestClient> {
  return kind === "a client of 2026-07-28" ? connectV2(url, headers) : connectV1(url, headers);
}

async function connectV2(url: string, headers: Record<string, string>): Promise<TestClient> {
  const client = new ClientV2({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new TransportV2(new URL(url), { requestInit: { headers } }));
  onTestFinished(() => client.close());
  await client.listTools();
  return {
    call: async (name, args = {}) => checked(await client.callTool({ name, arguments: args })),
    tools: async () => (await client.listTools()).tools,
    server: () => {
      const instructions = client.getInstructions();
      const protocol = client.getNegotiatedProtocolVersion();
      return {
        ...client.getServerVersion(),
        ...(instructions !== undefined && { instructions }),
        ...(protocol !== undefined && { protocol }),
      };
    },
  };
}

async function connectV1(url: string, headers: Record<string, string>): Promise<TestClient> {
  const client = new ClientV1({ name: "test", version: "1" });
  const transport = new TransportV1(new URL(url), { requestInit: { headers } });
  // The v1 types are not written for exactOptionalPropertyTypes: its transport is one of its own transports all the same.
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  onTestFinished(() => client.close());
  await client.listTools();
  return {
    call: async (name, args = {}) => checked(await client.callTool({ name, arguments: args })),
    tools: async () => (await client.listTools()).tools,
    server: () => {
      const instructions = client.getInstructions();
      const protocol = transport.protocolVersion;
      return {
        ...client.getServerVersion(),
        ...(instructions !== undefined && { instructions }),
        ...(protocol !== undefined && { protocol }),
      };
    },
  };
}

/** Every result, good or bad, says the same as text and as structured content. */
function checked(result: { [member: string]: unknown }): CallResult {
  const content = result.content as CallResult["content"];
  expect(content[0]?.type).toBe("text");
  const facts = result.structuredContent as Facts;
  expect(JSON.parse(String(content[0]?.text))).toEqual(facts);
  const isError = result.isError === true;
  if (isError)
    expect(facts).toMatchObject({
      status: "failed",
      error: { code: expect.any(String), recoveryHint: expect.any(String) },
    });
  else expect(facts).toMatchObject({ status: expect.any(String), nextStep: expect.any(String) });
  return { isError, facts, content };
}

/** The facts of a call that must succeed. */
export async function facts(
  client: TestClient,
  name: string,
  args: Record<string, unknown> = {},
): Promise<Facts> {
  const result = await client.call(name, args);
  if (result.isError) throw new Error(`${name} failed: ${JSON.stringify(result.facts)}`);
  return result.facts;
}

/** The error of a call that must fail. */
export async function failure(
  client: TestClient,
  name: string,
  args: Record<string, unknown> = {},
): Promise<Facts["error"]> {
  const result = await client.call(name, args);
  if (!result.isError) throw new Error(`${name} succeeded: ${JSON.stringify(result.facts)}`);
  return result.facts.error;
}
