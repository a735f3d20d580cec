import * as z from "zod";
import { taskIdArgument } from "../task-argument.ts";
import { isAtRest } from "../task-facts.ts";
import { followedTaskSchema } from "../task-output.ts";
import { renderTask } from "../task-result.ts";
import { waitForTask } from "../task-wait.ts";
import { defineTool } from "../tool-definition.ts";

export const durableTaskGet = defineTool({
  name: "durable_task_get",
  title: "Follow a task",
  description: `Work on large files and other long jobs runs as tasks, which go on whatever happens to this conversation: wait for them here. With waitMs 40000 the call returns as soon as the task ends or asks something, or after that time; then call again.
status is working, input_required (answer inputRequest with durable_task_respond), completed (result), failed (error) or cancelled. The result is kept until expiresAt, and can be fetched again and again.`,
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  inputSchema: z.object({
    taskId: taskIdArgument,
    waitMs: z
      .int()
      .min(0)
      .max(40_000)
      .optional()
      .describe("Wait up to this many milliseconds for the end or a question; 40000 at most."),
  }),
  outputSchema: followedTaskSchema,
  async handler({ taskId, waitMs = 0 }, context) {
    const task = await waitForTask(taskId, context, waitMs, isAtRest);
    return { facts: await renderTask(task, context) };
  },
});
