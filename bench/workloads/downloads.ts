/** Downloads: the whole of a large file, and random ranges of it, against a bare Node file stream and nginx's static files. */
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { sendBodies, sendRequests } from "../client.ts";
import { patchHead, requestHead } from "../http-text.ts";
import { recordCall } from "../mcp-calls.ts";
import type { RunningServer } from "../processes.ts";
import type { Scale } from "../scale.ts";
import type { ServerId } from "../servers.ts";
import { readSlice } from "../source.ts";
import { awaitUpload, createUpload } from "../tus-uploads.ts";
import { type AnyWorkload, type RunContext, workload } from "../workload.ts";

const servers: readonly ServerId[] = ["a", "g", "h"];
const connections = 16;

/** Puts the source where the server can send it from. @returns the path of its URL. */
async function offer(server: RunningServer, { source }: RunContext): Promise<string> {
  if (server.kind.door !== "tus") {
    copyFileSync(source.path, join(server.dir, server.kind.storedIn ?? "", "offered"));
    return "/offered";
  }
  const path = await createUpload(server, source.bytes);
  const send = { kind: "file", path: source.path, offset: 0, bytes: source.bytes } as const;
  await sendBodies(server.port, [[{ head: patchHead(path, 0, source.bytes), send }]]);
  const { handle } = await awaitUpload(server, path);
  const { structuredContent } = await recordCall(server.port, "2026-07-28", "file_download", { handle });
  return new URL(z.object({ url: z.string() }).parse(structuredContent).url).pathname;
}

/** A few bytes from the middle, compared: that the right file is sent is certain after that. */
async function checkOffer(server: RunningServer, path: string, { source }: RunContext): Promise<void> {
  const start = Math.floor(source.bytes / 3);
  const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, {
    headers: { Range: `bytes=${start}-${start + 99_999}` },
  });
  const got = Buffer.from(await answer.arrayBuffer());
  if (!got.equals(readSlice(source, start, 100_000)))
    throw new Error(`${server.kind.label} sends other bytes`);
}

async function prepare(server: RunningServer, context: RunContext): Promise<string> {
  const path = await offer(server, context);
  await checkOffer(server, path, context);
  return path;
}

const common = {
  servers,
  media: ["tmpfs"],
  reference: "h",
  memoryRounds: null,
  keepsFiles: true,
  prepare,
} as const;

const whole = workload({
  ...common,
  name: "download",
  title: ({ fileBytes }: Scale) => `download of ${fileBytes / 2 ** 20} MiB`,
  unit: "MB/s",
  async run(server: RunningServer, { source }: RunContext, path: string) {
    const result = await sendBodies(server.port, [[{ head: requestHead("GET", path, {}), send: null }]]);
    const answer = result.answers[0]?.[0];
    if (answer?.status !== 200 || answer.bodyBytes !== source.bytes)
      throw new Error(`${server.kind.label} answered ${answer?.head ?? "nothing"}`);
    return {
      seconds: result.seconds,
      amount: source.bytes / 1e6,
      clientCpuSeconds: result.cpuSeconds,
      check: () => {},
    };
  },
});

/** The same ranges for every server and round: a generator of Lehmer's, with its usual constants. */
function randomRanges(count: number, rangeBytes: number, fileBytes: number): string[] {
  let seed = 1;
  return Array.from({ length: count }, () => {
    seed = (seed * 48_271) % 2_147_483_647;
    const start = Math.floor((seed / 2_147_483_647) * (fileBytes - rangeBytes));
    return `bytes=${start}-${start + rangeBytes - 1}`;
  });
}

const ranges = workload({
  ...common,
  name: "ranges",
  title: (scale: Scale) =>
    `${scale.ranges} random ranges of ${scale.rangeBytes / 1024} KiB, ${connections} at a time`,
  unit: "requests/s",
  async run(server: RunningServer, { scale, source, isWarmUp }: RunContext, path: string) {
    const turns = isWarmUp ? Math.ceil(scale.ranges / 10) : scale.ranges;
    const { seconds, cpuSeconds, bodyBytes } = await sendRequests({
      port: server.port,
      connections,
      requests: randomRanges(scale.ranges, scale.rangeBytes, source.bytes).map((range) =>
        requestHead("GET", path, { Range: range }),
      ),
      followUp: null,
      expect: 206,
      expectFollowUp: 0,
      turns,
      durationMs: Number.MAX_SAFE_INTEGER,
    });
    if (bodyBytes !== turns * scale.rangeBytes)
      throw new Error(`${server.kind.label} sent ${bodyBytes} bytes`);
    return { seconds, amount: turns, clientCpuSeconds: cpuSeconds, check: () => {} };
  },
});

export const downloadWorkloads: readonly AnyWorkload[] = [whole, ranges];
