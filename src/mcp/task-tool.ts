/**
 * Tools whose work is a durable task: what they say of themselves, and how such a tool becomes one like every other. A plain call
 * answers at once with the task's id; the faces of the protocol start the same task by `starts`.
 */
import type * as z from "zod";
import type { JsonValue, Task } from "../tasks/engine.ts";
import { tasksOf } from "./task-facts.ts";
import { taskOutputSchema } from "./task-output.ts";
import { renderTask } from "./task-result.ts";
import type { ToolAnnotations, ToolContext, ToolDefinition } from "./tool-definition.ts";

export interface TaskToolDefinition<Input extends z.ZodObject = z.ZodObject> {
  /** At most 32 characters of `a-z_`. */
  readonly name: string;
  readonly title: string;
  /** At most 2,048 bytes; the first sentence says what to do with large files. */
  readonly description: string;
  readonly annotations: ToolAnnotations;
  /** An object without unions. A member `idempotencyKey` (a string) is the start's and is not passed to the task. */
  readonly inputSchema: Input;
  /** Members of the handler's result, an open object: all optional, without unions. Any JSON where it is left out. */
  readonly resultSchema?: z.ZodRawShape;
  /** Name of the task kind whose handler does the work. */
  readonly kind: string;
  /** The task fails where it has not ended by then. */
  readonly deadlineMs?: number;
  /**
   * What the task is given, from checked arguments; by default these as they are. Refuses with `TransferError` what can be seen at
   * once to be wrong (a path in place of a handle), within a second.
   */
  prepare?(
    args: Omit<z.output<Input>, "idempotencyKey">,
    context: ToolContext,
  ): JsonValue | Promise<JsonValue>;
  /** A sentence before the `nextStep` of the answer that starts the task. */
  describeStart?(args: z.output<Input>, task: Task): string;
}

/** The tool. Its handler is registered with the task engine apart from it, as the kind of the same name. */
export function defineTaskTool<Input extends z.ZodObject>(
  tool: TaskToolDefinition<Input>,
): ToolDefinition<Input> {
  const { name, title, description, annotations, inputSchema, resultSchema } = tool;
  const starts = async (
    args: z.output<Input>,
    context: ToolContext,
    ttlMs: number | null = null,
  ): Promise<Task> => {
    const { idempotencyKey, ...own } = args as z.output<Input> & { idempotencyKey?: unknown };
    const { task } = await tasksOf(context).start(context.principal, {
      kind: tool.kind,
      // Checked arguments came as JSON, so they are JSON where no schema transforms them.
      args: tool.prepare === undefined ? (own as JsonValue) : await tool.prepare(own, context),
      idempotencyKey: typeof idempotencyKey === "string" ? idempotencyKey : null,
      deadlineMs: tool.deadlineMs ?? null,
      ttlMs,
    });
    return task;
  };
  return {
    name,
    title,
    description,
    annotations,
    inputSchema,
    outputSchema: taskOutputSchema(resultSchema),
    starts,
    async handler(args, context) {
      const task = await starts(args, context);
      const { nextStep, ...facts } = await renderTask(task, context);
      const sentence = tool.describeStart?.(args, task);
      return {
        facts: { ...facts, nextStep: sentence === undefined ? nextStep : `${sentence} ${nextStep}` },
      };
    },
  };
}
