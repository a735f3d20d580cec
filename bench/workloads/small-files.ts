/** Many small files, one after the other and 16 at once: what a request costs, and how well their commits are grouped. */

import type { RequestPlan } from "../client/request-plan.ts";
import { sendRequests } from "../client.ts";
import { createHead, createWithHead, patchHead, putHead } from "../http-text.ts";
import type { RunningServer } from "../processes.ts";
import type { Scale } from "../scale.ts";
import { readSlice } from "../source.ts";
import { checkStored } from "../stored-files.ts";
import { awaitUpload } from "../tus-uploads.ts";
import { type AnyWorkload, type RunContext, workload } from "../workload.ts";

type Way = "create-patch" | "create-with";

function planOf(
  server: RunningServer,
  way: Way,
  body: string,
): Pick<RequestPlan, "requests" | "followUp" | "expect"> {
  if (server.kind.door === "put") {
    // nginx says 201 where the name is new, and 204 where it is not; the plain servers always say 204.
    const expect = server.kind.id === "g" ? 201 : 204;
    return { requests: [putHead("/small-{n}", body.length) + body], followUp: null, expect };
  }
  if (way === "create-with")
    return { requests: [createWithHead(body.length) + body], followUp: null, expect: 201 };
  return {
    requests: [createHead(body.length)],
    followUp: patchHead("{location}", 0, body.length) + body,
    expect: 201,
  };
}

function smallFiles(way: Way, connections: number): AnyWorkload {
  const how = way === "create-patch" ? "POST, then PATCH" : "POST with the bytes (e, f, g: PUT)";
  return workload({
    name: `small-${way}-${connections}`,
    title: ({ smallFiles: count, smallBytes }: Scale) =>
      `${count} files of ${smallBytes} bytes, ${connections} at a time: ${how}`,
    servers: way === "create-patch" ? ["a", "b", "c", "d"] : ["a", "b", "c", "d", "e", "f", "g"],
    media: ["tmpfs", "disk"],
    reference: "c",
    unit: "files/s",
    memoryRounds: null,
    keepsFiles: false,
    prepare: async (_server, { scale, source }) => readSlice(source, 0, scale.smallBytes).toString("latin1"),
    async run(server: RunningServer, { scale, source, isWarmUp }: RunContext, body: string) {
      const turns = isWarmUp ? scale.warmUpFiles : scale.smallFiles;
      const { seconds, cpuSeconds, locations } = await sendRequests({
        ...planOf(server, way, body),
        port: server.port,
        connections,
        expectFollowUp: 204,
        turns,
        durationMs: Number.MAX_SAFE_INTEGER,
      });
      return {
        seconds,
        amount: turns,
        clientCpuSeconds: cpuSeconds,
        async check() {
          // nginx, too, says where a PUT went.
          for (const path of server.kind.door === "tus" ? locations : []) {
            const { offset } = await awaitUpload(server, path);
            if (offset !== body.length)
              throw new Error(`${server.kind.label} has ${offset} bytes of a small file`);
          }
          checkStored(server, source, [{ offset: 0, bytes: body.length }], turns);
        },
      };
    },
  });
}

export const smallFileWorkloads: readonly AnyWorkload[] = [
  smallFiles("create-patch", 1),
  smallFiles("create-patch", 16),
  smallFiles("create-with", 1),
  smallFiles("create-with", 16),
];
