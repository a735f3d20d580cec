/** Small jobs and the tools that start them, for tests of what is around tasks. */
import * as z from "zod";
import { defineTaskTool } from "../../src/mcp/task-tool.ts";
import type { ToolDefinition } from "../../src/mcp/tool-definition.ts";
import { InputRefused, type JsonValue, type TaskContext, type TaskKind } from "../../src/tasks/engine.ts";

const annotations = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: false,
  openWorldHint: false,
};

interface Job {
  readonly tool: ToolDefinition;
  readonly kind: TaskKind;
}

function job<Shape extends z.ZodRawShape>(
  name: string,
  shape: Shape,
  work: (args: z.output<z.ZodObject<Shape>>, context: TaskContext) => Promise<JsonValue>,
): Job {
  const schema = z.object(shape);
  return {
    tool: defineTaskTool({
      name,
      title: `Job ${name}`,
      description: `For work on large files and other tests: ${name}.`,
      annotations,
      inputSchema: z.object({
        ...shape,
        idempotencyKey: z.string().optional().describe("A repeat with the same key gives the same task."),
      }),
      kind: name,
    }),
    kind: { kind: name, handler: (args, context) => work(schema.parse(args), context) },
  };
}

/** The answer, or how it was refused. */
async function answerOf(answer: Promise<JsonValue>): Promise<JsonValue> {
  try {
    return { answer: await answer };
  } catch (error) {
    if (error instanceof InputRefused) return { refused: error.action };
    throw error;
  }
}

const jobs = [
  job("job_count", { to: z.int().describe("How far.") }, async ({ to }, { step, progress }) => {
    let sum = 0;
    for (let number = 1; number <= to; number += 1) {
      sum += await step(`add ${number}`, () => number);
      await progress(`Added ${number}`, number / to);
    }
    return { sum };
  }),
  job("job_ask", {}, (_args, { needInput }) =>
    answerOf(needInput({ prompt: "Shall it go on?", choices: ["yes", "no"] })),
  ),
  job("job_halfway", {}, async (_args, { step, progress, needInput }) => {
    const before = await step("first half", () => "done");
    await progress("Half is done", 0.5);
    const asked = await answerOf(needInput({ prompt: "Shall the rest follow?", choices: ["yes", "no"] }));
    return { before, asked, after: await step("second half", () => "done") };
  }),
  job("job_form", {}, (_args, { needInput }) => {
    const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    return answerOf(needInput({ prompt: "Who are you?", schema }));
  }),
  job("job_fail", {}, async () => {
    throw new Error("The job has failed in its own words.");
  }),
  job("job_wait", {}, (_args, { signal }) => {
    const { promise, reject } = Promise.withResolvers<JsonValue>();
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    return promise;
  }),
  job("job_large", { length: z.int().describe("Characters.") }, async ({ length }) => ({
    text: "x".repeat(length),
  })),
];

export const jobTools: readonly ToolDefinition[] = jobs.map(({ tool }) => tool);
export const jobKinds: readonly TaskKind[] = jobs.map(({ kind }) => kind);
