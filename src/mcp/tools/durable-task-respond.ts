import * as z from "zod";
import { TransferError } from "../../errors.ts";
import type { JsonValue, Task } from "../../tasks/engine.ts";
import { taskIdArgument } from "../task-argument.ts";
import { tasksOf } from "../task-facts.ts";
import { meantBy } from "../task-input.ts";
import { changedTaskSchema } from "../task-output.ts";
import { renderTask } from "../task-result.ts";
import { defineTool, type ToolContext } from "../tool-definition.ts";

export const durableTaskRespond = defineTool({
  name: "durable_task_respond",
  title: "Answer a task's question",
  description: `Answers the question (inputRequest) that a task waits for in the middle of long work, such as on large files, so that the work goes on. Ask the user first where only they can know the answer.
response is one of the choices exactly, or text, or, where the question has a schema, the JSON of an object that fits it. inputId names the question; without it the oldest open one is answered. Afterwards follow the task with durable_task_get.`,
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  inputSchema: z.object({
    taskId: taskIdArgument,
    // Listed as text, which every host can send; an object is taken as well, from those that send one.
    response: z.unknown().meta({
      type: "string",
      description: "One of the choices exactly, or text, or the JSON of an object that fits the schema.",
    }),
    inputId: z.string().min(1).max(256).optional().describe("inputRequest.id of the question."),
  }),
  outputSchema: changedTaskSchema,
  async handler({ taskId, response, inputId }, context) {
    if (response === undefined)
      throw new TransferError("invalid_param", "response: It is required.", { param: "response" });
    // Arguments came as JSON.
    const task = await respond(taskId, inputId ?? null, response as JsonValue, context);
    return { facts: await renderTask(task, context) };
  },
});

async function respond(
  taskId: string,
  inputId: string | null,
  response: JsonValue,
  context: ToolContext,
): Promise<Task> {
  const tasks = tasksOf(context);
  const { principal } = context;
  const { inputRequests } = await tasks.get(principal, taskId);
  const question = inputId === null ? inputRequests[0] : inputRequests.find(({ id }) => id === inputId);
  let refused: unknown;
  for (const value of meantBy(response, question)) {
    try {
      return await tasks.respond(principal, taskId, inputId, { action: "accept", value });
    } catch (error) {
      refused ??= error;
      if (!(error instanceof TransferError) || error.code !== "task_not_waiting") break;
    }
  }
  throw refused;
}
