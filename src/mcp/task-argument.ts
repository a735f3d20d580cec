/** The `taskId` argument of the tools. Whatever is no id of a task of one's own is unknown to the engine, whatever its form. */
import * as z from "zod";

export const taskIdArgument = z
  .string()
  .max(256)
  .describe("Id (task_…) from the call that started the task, or from durable_task_list.");
