/**
 * A process with the task engine, as it is built, over a real store, which does a job when it is asked to. The callers of a job are in
 * this process too: what is measured is the engine and its store, without a protocol before them. Arguments: the port, and the folder.
 */
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { openStore, type Task, type TaskEngine } from "longshore/tasks";
import type { JobResult, TaskJob } from "./jobs.ts";
import { TakeOvers } from "./take-overs.ts";

type TaskKind = Parameters<TaskEngine["register"]>[0];

const [port = "0", dataDir = "."] = process.argv.slice(2);

/** As many as a task can have. */
const maxSteps = 50_000;

const oneStep: TaskKind = {
  kind: "one-step",
  handler: (_args, context) => context.step("work", () => 1),
};

const manySteps: TaskKind = {
  kind: "many-steps",
  async handler(args, context) {
    const endAt = performance.now() + Number(args);
    let n = 0;
    for (; n < maxSteps && performance.now() < endAt; n += 1) await context.step(`step ${n}`, () => n);
    return n;
  },
};

const { tasks, close } = await openStore(dataDir);
const takeOvers = new TakeOvers(tasks, dataDir);

async function ended(task: Task): Promise<Task> {
  let now = task;
  while (now.endedAt === null) now = await tasks.get(task.principal, task.taskId, { waitMs: 10_000 });
  if (now.status !== "completed") throw new Error(`A task ended as ${now.status}: ${now.error?.message}`);
  return now;
}

/** Callers that each do one thing after the other. Each has a principal of its own: one alone does not get all places. */
async function together(
  callers: number,
  ms: number,
  turn: (principal: string) => Promise<unknown>,
): Promise<number> {
  const endAt = performance.now() + ms;
  let turns = 0;
  await Promise.all(
    Array.from({ length: callers }, async (_, n) => {
      while (performance.now() < endAt) {
        await turn(`caller ${n}`);
        turns += 1;
      }
    }),
  );
  return turns;
}

async function recordSteps(count: number, ms: number): Promise<number> {
  const results = await Promise.all(
    Array.from({ length: count }, async (_, n) => {
      const { task } = await tasks.start(`caller ${n}`, { kind: manySteps.kind, args: ms });
      return Number((await ended(task)).result);
    }),
  );
  return results.reduce((sum, steps) => sum + steps, 0);
}

async function timed(work: () => Promise<number>): Promise<JobResult> {
  const startedAt = performance.now();
  const amount = await work();
  return { seconds: (performance.now() - startedAt) / 1000, amount };
}

/** A kind is registered by the job that needs it: with none, this process leaves the tasks of others alone. */
function perform(job: TaskJob): Promise<JobResult> {
  switch (job.do) {
    case "start":
      return timed(() =>
        together(job.callers, job.ms, (principal) =>
          tasks.start(principal, { kind: "nobody's", args: null }),
        ),
      );
    case "run":
      tasks.register(oneStep);
      return timed(() =>
        together(job.callers, job.ms, async (principal) =>
          ended((await tasks.start(principal, { kind: oneStep.kind, args: null })).task),
        ),
      );
    case "steps":
      tasks.register(manySteps);
      return timed(() => recordSteps(job.tasks, job.ms));
    case "take-over":
      return takeOvers.measure(job.kills);
    default:
      return job satisfies never;
  }
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const result = await perform((await json(request)) as TaskJob);
    response.end(JSON.stringify(result));
  } catch (error) {
    response.writeHead(500).end(String(error));
  }
}

http.createServer((request, response) => void answer(request, response)).listen(Number(port), "127.0.0.1");

async function stop(): Promise<void> {
  await takeOvers.stop();
  await close();
  process.exit();
}

process.once("SIGTERM", () => void stop());
