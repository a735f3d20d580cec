/**
 * Durable tasks: how fast they are started, run and recorded, and how soon the tasks of a killed process go on. None of the other
 * servers has anything of the kind, so there is nobody to set the figures against.
 */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { sendBodies, sendRequests } from "../client.ts";
import { patchHead } from "../http-text.ts";
import { recordCall } from "../mcp-calls.ts";
import type { RunningServer } from "../processes.ts";
import type { Scale } from "../scale.ts";
import type { JobResult, TaskJob } from "../tasks/jobs.ts";
import { awaitUpload, createUpload } from "../tus-uploads.ts";
import { type AnyWorkload, type RunContext, workload } from "../workload.ts";

const callers = 16;
const fileBytes = 1_024;
const lookMs = 20;
const patienceMs = 60_000;

const noPeer = "no ratio, as no peer promises the same";

const common = { reference: null, memoryRounds: null } as const;

async function perform(server: RunningServer, job: TaskJob): Promise<JobResult> {
  const answer = await fetch(`http://127.0.0.1:${server.port}`, {
    method: "POST",
    body: JSON.stringify(job),
  });
  if (!answer.ok) throw new Error(`${server.kind.label}: ${await answer.text()}`);
  return (await answer.json()) as JobResult;
}

interface EngineRow extends Pick<AnyWorkload, "name" | "unit" | "media"> {
  readonly title: string;
  readonly job: (scale: Scale, isWarmUp: boolean) => TaskJob;
}

/** Callers and engine are in one process, so nothing of a client is counted apart. */
function engineRow({ title, job, ...rest }: EngineRow): AnyWorkload {
  return workload({
    ...common,
    ...rest,
    title: () => `${title}; ${noPeer}`,
    servers: ["t"],
    keepsFiles: false,
    prepare: async () => null,
    async run(server: RunningServer, { scale, isWarmUp }: RunContext) {
      const { seconds, amount } = await perform(server, job(scale, isWarmUp));
      return { seconds, amount, clientCpuSeconds: 0, check: () => {} };
    },
  });
}

const durationMs = ({ rateMs }: Scale, isWarmUp: boolean): number => (isWarmUp ? rateMs / 4 : rateMs);

/** @returns the call that has the digest of a small file computed. */
async function checksumCall(server: RunningServer, { source }: RunContext): Promise<string> {
  const path = await createUpload(server, fileBytes);
  const send = { kind: "file", path: source.path, offset: 0, bytes: fileBytes } as const;
  await sendBodies(server.port, [[{ head: patchHead(path, 0, fileBytes), send }]]);
  const { handle } = await awaitUpload(server, path);
  const args = { handle, algorithms: ["sha256"] };
  return (await recordCall(server.port, "2026-07-28", "file_checksum", args)).text;
}

/** Read from the store itself: calls that ask would be work for the server that is measured. */
function countTasks(server: RunningServer, where: string): number {
  const database = new DatabaseSync(join(server.dir, server.kind.recordsIn ?? ""), {
    readOnly: true,
    timeout: 5_000,
  });
  try {
    return Number(database.prepare(`SELECT count(*) AS n FROM task WHERE ${where}`).get()?.n);
  } finally {
    database.close();
  }
}

async function allEnded(server: RunningServer): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (countTasks(server, "ended_at IS NULL") > 0) {
    if (performance.now() > deadline) throw new Error(`${server.kind.label} does not end its tasks`);
    await sleep(lookMs);
  }
}

const startOverMcp = workload({
  ...common,
  name: "task-start-mcp",
  title: ({ tasks }: Scale) =>
    `tasks started over MCP 2026-07-28 while the server runs them: ${tasks} file_checksum of ${fileBytes} bytes, ${callers} at a time; ${noPeer}`,
  unit: "tasks/s",
  servers: ["a"],
  media: ["tmpfs", "disk"],
  keepsFiles: true,
  prepare: checksumCall,
  async run(server: RunningServer, { scale, isWarmUp }: RunContext, text: string) {
    await allEnded(server);
    const before = countTasks(server, "status = 'completed'");
    const turns = isWarmUp ? Math.ceil(scale.tasks / 10) : scale.tasks;
    const { seconds, cpuSeconds } = await sendRequests({
      port: server.port,
      connections: callers,
      requests: [text],
      followUp: null,
      expect: 200,
      expectFollowUp: 0,
      turns,
      durationMs: Number.MAX_SAFE_INTEGER,
    });
    // What is left to do is this run's: it must not fall into the next.
    await allEnded(server);
    return {
      seconds,
      amount: turns,
      clientCpuSeconds: cpuSeconds,
      check() {
        const completed = countTasks(server, "status = 'completed'") - before;
        if (completed !== turns)
          throw new Error(`${server.kind.label} completed ${completed} of ${turns} tasks`);
      },
    };
  },
});

export const taskWorkloads: readonly AnyWorkload[] = [
  engineRow({
    name: "task-start",
    title: `tasks started and durable, ${callers} callers; nobody runs them`,
    unit: "tasks/s",
    media: ["tmpfs", "disk"],
    job: (scale, isWarmUp) => ({ do: "start", callers, ms: durationMs(scale, isWarmUp) }),
  }),
  startOverMcp,
  engineRow({
    name: "task-run",
    title: `tasks of one step from start to end, ${callers} callers`,
    unit: "tasks/s",
    media: ["tmpfs", "disk"],
    job: (scale, isWarmUp) => ({ do: "run", callers, ms: durationMs(scale, isWarmUp) }),
  }),
  ...[1, 16].map((tasks) =>
    engineRow({
      name: `task-steps-${tasks}`,
      title: `steps recorded one after the other, ${tasks === 1 ? "one task" : `${tasks} tasks at once`}`,
      unit: "steps/s",
      media: ["tmpfs", "disk"],
      job: (scale, isWarmUp) => ({ do: "steps", tasks, ms: durationMs(scale, isWarmUp) }),
    }),
  ),
  engineRow({
    name: "task-take-over",
    title:
      "from SIGKILL of a process to its step running in another (CPU and memory: of a third, which kills)",
    unit: "ms",
    media: ["tmpfs"],
    job: ({ kills }, isWarmUp) => ({ do: "take-over", kills: isWarmUp ? 1 : kills }),
  }),
];
