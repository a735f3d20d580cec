/**
 * Durable tasks on a user's server: tools whose work outlives the call, the connection and the process. Only attaches: engine, workers and
 * handlers belong to the store, so this may be called for any number of servers, and costs little.
 */
import { asTransferError } from "../errors.ts";
import type { Calls, OfferedTool, ToolRegistrar } from "../mcp/registrar.ts";
import { defineTaskTool } from "../mcp/task-tool.ts";
import type { ToolAnnotations } from "../mcp/tool-definition.ts";
import { durableTaskTools } from "../mcp/tools/durable-task-tools.ts";
import type { TaskContext as EngineContext, JsonValue } from "../tasks/engine.ts";
import { createLinks } from "../transfer/links.ts";
import { callsOf, type PrincipalOf } from "./calls.ts";
import type { Store } from "./open-store.ts";
import type { TaskContext } from "./task-context.ts";
import { registerKind } from "./task-kinds.ts";
import { argumentNames, listedInput, listedOutput } from "./task-tool-schemas.ts";
import {
  type Checked,
  type ObjectSchema,
  type Unchecked,
  type UserSchema,
  userSchema,
} from "./user-schema.ts";

/**
 * What {@link withTasks} goes by.
 *
 * @example
 * const options: WithTasksOptions = { store, principalOf: ({ authInfo }) => authInfo?.clientId ?? "local" };
 */
export interface WithTasksOptions {
  readonly store: Store;
  /** Default: from the `authInfo` that the SDK gives, else `local`. */
  readonly principalOf?: PrincipalOf;
}

/**
 * What a task tool is.
 *
 * @typeParam Input an object's schema of zod 3 or 4, or its members.
 *
 * @example
 * tasks.taskTool("crawl-site", { description: "Crawls a site.", inputSchema: { url: z.string() }, restart: "whole" }, crawl);
 */
export interface TaskToolConfig<Input extends ObjectSchema, Output extends ObjectSchema> {
  readonly title?: string;
  /** For the model: what the tool does, and what it gives. */
  readonly description: string;
  /** Defaults are filled in before the task is stored. An optional `idempotencyKey` is added where there is none. */
  readonly inputSchema?: Input;
  /** Of the handler's result. The result is checked against it, and the task fails where it does not fit. */
  readonly outputSchema?: Output;
  /** Default: it changes something, once for each call, in an open world. */
  readonly annotations?: Partial<ToolAnnotations>;
  /** `whole`: after a crash, a handler with nothing recorded may run again from its start; otherwise such a task ends `failed`. */
  readonly restart?: "whole";
  /** The task fails where it has not ended by then. */
  readonly deadlineMs?: number;
  /** Name of the handler in the store, where it must differ from the tool's: two servers with tools of one name over one store. */
  readonly kind?: string;
}

/**
 * Does the work of a task. It gets checked arguments, and returns JSON (or nothing). What it throws is the task's failure; a
 * {@link TransferError} keeps its code.
 *
 * @example
 * const crawl: TaskHandler<{ url: string }> = async ({ url }, ctx) => ({ pages: await ctx.step("crawl", () => crawlAll(url)) });
 */
export type TaskHandler<Args, Result = unknown> = (args: Args, ctx: TaskContext) => Promise<Result> | Result;

type ResultOf<Output> = [Output] extends [never]
  ? unknown
  : Output extends ObjectSchema
    ? Unchecked<Output>
    : unknown;

/**
 * What {@link withTasks} returns.
 *
 * @example
 * const tasks: Tasks = withTasks(registrar, { store });
 */
export interface Tasks {
  /**
   * A tool that starts a task and answers at once with its `taskId`. The caller follows it with `durable_task_get`, answers its questions with
   * `durable_task_respond`, and ends it with `durable_task_cancel`.
   *
   * @throws TypeError where the store has another handler by this name, or a schema is not that of an object.
   * @example
   * tasks.taskTool(
   *   "resize-images",
   *   { description: "Resizes the images in an archive.", inputSchema: { archive: z.string(), width: z.number().default(800) } },
   *   async ({ archive, width }, ctx) => {
   *     const file = await ctx.files.open(archive);
   *     return { resized: await ctx.step("resize", () => resizeAll(file.stream(), width)) };
   *   },
   * );
   */
  taskTool<Input extends ObjectSchema = Record<never, never>, Output extends ObjectSchema = never>(
    name: string,
    config: TaskToolConfig<Input, Output>,
    handler: TaskHandler<Checked<Input>, ResultOf<Output>>,
  ): void;
}

/** Tasks alone hand out no URLs: the tools that do come with the transfers, which know where they are reached. */
const noLinks = createLinks("http://localhost");

/**
 * Offers durable tasks on a server: registers `durable_task_get`, `durable_task_respond`, `durable_task_cancel` and
 * `durable_task_list` once, and returns what registers tools of one's own. On the v2 SDK, clients that declare the
 * extension `io.modelcontextprotocol/tasks` get tasks by it.
 *
 * @example
 * const tasks = withTasks(asToolRegistrar(mcp), { store });
 * tasks.taskTool("crawl-site", { description: "…", inputSchema: { url: z.string() } }, async ({ url }, ctx) => { … });
 */
export function withTasks(registrar: ToolRegistrar, { store, principalOf }: WithTasksOptions): Tasks {
  const calls = callsOf(store, noLinks, principalOf);
  for (const tool of durableTaskTools) registrar.offer({ tool, calls });
  registrar.serveTasks(calls);
  return {
    taskTool(name, config, handler) {
      const { kind = name, outputSchema, restart } = config;
      const output =
        outputSchema === undefined ? null : userSchema(outputSchema, `outputSchema of '${name}'`);
      registerKind(
        store,
        {
          kind,
          ...(restart !== undefined && { restart }),
          handler: (args, context) => work(handler as TaskHandler<unknown>, output, args, context),
        },
        handler,
      );
      registrar.offer(taskToolOf(name, { ...config, kind }, output, calls));
    },
  };
}

async function work(
  handler: TaskHandler<unknown>,
  output: UserSchema | null,
  args: JsonValue,
  context: EngineContext,
): Promise<JsonValue | undefined> {
  const result = await handler(args, context as TaskContext);
  // The engine records JSON alone, and says what is not.
  return (output === null ? result : await checkedResult(output, result)) as JsonValue | undefined;
}

async function checkedResult(output: UserSchema, result: unknown): Promise<unknown> {
  try {
    return await output.check(result);
  } catch (error) {
    // It is no argument of the caller's that is wrong.
    throw new Error(
      `The result does not fit the outputSchema of its tool. ${asTransferError(error).message}`,
    );
  }
}

type AnyConfig = Omit<TaskToolConfig<ObjectSchema, ObjectSchema>, "outputSchema"> & { readonly kind: string };

function taskToolOf(name: string, config: AnyConfig, output: UserSchema | null, calls: Calls): OfferedTool {
  const input = userSchema(config.inputSchema, `inputSchema of '${name}'`);
  const { title = name, description, kind, deadlineMs, annotations } = config;
  const tool = defineTaskTool({
    name,
    title,
    description,
    annotations: {
      readOnlyHint: false,
      destructiveHint: false,
      idempotentHint: false,
      openWorldHint: true,
      ...annotations,
    },
    inputSchema: argumentNames(input, name),
    kind,
    ...(deadlineMs !== undefined && { deadlineMs }),
    prepare: async (args) => (await input.check(args)) as JsonValue,
  });
  return { tool, calls, listed: { input: () => listedInput(input), output: () => listedOutput(output) } };
}
