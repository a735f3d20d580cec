import * as z from "zod";
import { taskIdArgument } from "../task-argument.ts";
import { tasksOf } from "../task-facts.ts";
import { changedTaskSchema } from "../task-output.ts";
import { renderTask } from "../task-result.ts";
import { defineTool } from "../tool-definition.ts";

export const durableTaskCancel = defineTool({
  name: "durable_task_cancel",
  title: "Cancel a task",
  description: `Stops a task whose work, such as that on a large file, is not wanted any more. The call is acknowledged at once; the work stops a moment later, and durable_task_get tells when. What the task has stored already stays. A task that has ended is not changed.`,
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  inputSchema: z.object({ taskId: taskIdArgument }),
  outputSchema: changedTaskSchema,
  async handler({ taskId }, context) {
    const task = await tasksOf(context).cancel(context.principal, taskId);
    return { facts: await renderTask(task, context) };
  },
});
