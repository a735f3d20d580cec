/** Requests that move no bytes: HEAD of an upload, and tool calls over MCP against a bare server of the same SDK. */
import { sendRequests } from "../client.ts";
import { headHead } from "../http-text.ts";
import { type Era, recordCall } from "../mcp-calls.ts";
import type { RunningServer } from "../processes.ts";
import type { ServerId } from "../servers.ts";
import { awaitUpload, createUpload } from "../tus-uploads.ts";
import { type AnyWorkload, type RunContext, workload } from "../workload.ts";

const connections = 16;

interface Rate {
  readonly name: string;
  readonly title: string;
  readonly servers: readonly ServerId[];
  readonly reference: ServerId;
  /** The request to repeat. */
  readonly request: (server: RunningServer) => Promise<string>;
}

function rate({ name, title, servers, reference, request }: Rate): AnyWorkload {
  return workload({
    name,
    title: () => `${title}, ${connections} at a time`,
    servers,
    media: ["tmpfs"],
    reference,
    unit: "requests/s",
    memoryRounds: null,
    keepsFiles: true,
    prepare: request,
    async run(server: RunningServer, { scale, isWarmUp }: RunContext, text: string) {
      const { seconds, cpuSeconds, turns } = await sendRequests({
        port: server.port,
        connections,
        requests: [text],
        followUp: null,
        expect: 200,
        expectFollowUp: 0,
        turns: Number.MAX_SAFE_INTEGER,
        durationMs: isWarmUp ? scale.rateMs / 4 : scale.rateMs,
      });
      return { seconds, amount: turns, clientCpuSeconds: cpuSeconds, check: () => {} };
    },
  });
}

async function statusCall(server: RunningServer, era: Era): Promise<string> {
  if (server.kind.id === "m") return (await recordCall(server.port, era, "echo", { text: "hello" })).text;
  const { handle } = await awaitUpload(server, await createUpload(server, 1_000));
  return (await recordCall(server.port, era, "upload_status", { handle })).text;
}

async function listCall(server: RunningServer, era: Era): Promise<string> {
  if (server.kind.id === "m") return (await recordCall(server.port, era, "echo", { text: "hello" })).text;
  return (await recordCall(server.port, era, "file_list", { limit: 1 })).text;
}

export const rateWorkloads: readonly AnyWorkload[] = [
  rate({
    name: "head",
    title: "HEAD of an upload",
    servers: ["a", "b", "c", "d"],
    reference: "c",
    request: async (server) => headHead(await createUpload(server, 1_000)),
  }),
  rate({
    name: "upload-status",
    title: "upload_status (m: echo), MCP 2026-07-28",
    servers: ["a", "m"],
    reference: "m",
    request: (server) => statusCall(server, "2026-07-28"),
  }),
  rate({
    name: "upload-status-2025",
    title: "upload_status (m: echo), MCP 2025-11-25",
    servers: ["a", "m"],
    reference: "m",
    request: (server) => statusCall(server, "2025-11-25"),
  }),
  rate({
    name: "tools-call",
    title: "file_list of an empty store (m: echo), MCP 2026-07-28",
    servers: ["a", "m"],
    reference: "m",
    request: (server) => listCall(server, "2026-07-28"),
  }),
];
