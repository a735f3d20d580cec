/** Output schemas of what tells of a task: the tool that started it (at once, and with the final result) and `durable_task_*`. */
import * as z from "zod";
import { outputSchema } from "./output-schema.ts";

const text = z.string().optional();

const progress = z.looseObject({ message: text, fraction: z.number().optional() }).optional();

const inputRequest = z
  .looseObject({ id: text, prompt: text, choices: z.array(z.string()).optional() })
  .optional()
  .describe("The question that the task waits for an answer to.");

/** `resultSchema`: members of the result, where it is an object; any JSON where it is left out. */
export function taskOutputSchema(resultSchema?: z.ZodRawShape): z.ZodObject {
  const result = resultSchema === undefined ? z.unknown().optional() : z.looseObject(resultSchema).optional();
  return outputSchema({
    taskId: text,
    progress,
    inputRequest,
    result: result.describe("Once completed."),
    pollIntervalMs: z.number().optional(),
    expiresAt: text.describe("The result is kept until then."),
  });
}
