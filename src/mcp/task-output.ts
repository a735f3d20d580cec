/**
 * Output schemas of what tells of a task. All are open, so only `durable_task_get`, which is there to be read, names every fact: the others
 * tell the same ones, and a list of tools is read before every conversation.
 */
import * as z from "zod";
import { outputSchema } from "./output-schema.ts";

const text = z.string().optional();
const taskId = text;

/** A tool that starts a task. `resultSchema`: members of the result, where it is an object; any JSON where it is left out. */
export function taskOutputSchema(resultSchema?: z.ZodRawShape): z.ZodObject {
  const result = resultSchema === undefined ? z.unknown().optional() : z.looseObject(resultSchema).optional();
  return outputSchema({ taskId, result: result.describe("Once the task is completed.") });
}

/** `durable_task_respond` and `durable_task_cancel`. */
export const changedTaskSchema = outputSchema({ taskId });

/** `durable_task_get`. */
export const followedTaskSchema = outputSchema({
  taskId,
  progress: z.looseObject({ message: text, fraction: z.number().optional() }).optional(),
  inputRequest: z
    .looseObject({ id: text, prompt: text, choices: z.array(z.string()).optional() })
    .optional()
    .describe("The question that the task waits for an answer to."),
  result: z.unknown().optional().describe("Once completed."),
  pollIntervalMs: z.number().optional(),
  expiresAt: text.describe("The result is kept until then."),
});
