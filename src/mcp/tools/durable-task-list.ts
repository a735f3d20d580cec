import * as z from "zod";
import type { Task } from "../../tasks/engine.ts";
import { outputSchema } from "../output-schema.ts";
import { maxRows, pageFacts, pageInput, pageQuery } from "../paging.ts";
import { tasksOf } from "../task-facts.ts";
import { defineTool } from "../tool-definition.ts";

const maxTextLength = 100;

export const durableTaskList = defineTool({
  name: "durable_task_list",
  title: "List tasks",
  description: `Finds the tasks that work on large files or do other long jobs, which go on though the conversation that started them has ended.
Lists your own tasks, oldest first, ${maxRows} at most; pass nextCursor as cursor for the next page. status narrows the list: working are those that run, input_required those that wait for an answer. durable_task_get tells all of one.`,
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  inputSchema: z.object({
    status: z
      .enum(["working", "input_required", "completed", "failed", "cancelled"])
      .optional()
      .describe("Only these."),
    ...pageInput,
  }),
  outputSchema: outputSchema({
    tasks: z.array(z.looseObject({ taskId: z.string(), status: z.string() })).optional(),
    nextCursor: z.string().optional(),
  }),
  async handler(given, context) {
    const { tasks, nextCursor } = await tasksOf(context).list(context.principal, pageQuery(given));
    return {
      facts: pageFacts(
        "durable_task_list",
        "tasks",
        { rows: tasks.map(row), nextCursor },
        {
          none: "There is no such task.",
          use: "Use a taskId with durable_task_get, durable_task_respond or durable_task_cancel.",
        },
      ),
    };
  },
});

function row(task: Task): Record<string, unknown> {
  const { taskId, kind, status, progress, inputRequests, error, createdAt, expiresAt } = task;
  const [question] = inputRequests;
  return {
    taskId,
    kind: shortened(kind),
    status,
    ...(progress !== null && { progress: shortened(progress.message) }),
    ...(question !== undefined && { question: shortened(question.prompt) }),
    ...(error !== null && { error: error.code }),
    createdAt: createdAt.toISOString(),
    ...(expiresAt !== null && { expiresAt: expiresAt.toISOString() }),
  };
}

/** A page of the longest words would not fit a result; durable_task_get has all of them. */
function shortened(text: string): string {
  return text.length <= maxTextLength ? text : `${text.slice(0, maxTextLength - 1)}…`.toWellFormed();
}
