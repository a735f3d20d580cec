/**
 * What a tool is, apart from any SDK: plain values that a server of ours, or a user's `McpServer` of either SDK, can offer. Handlers
 * get arguments that were checked, answer with facts, and throw `TransferError`; `call-tool.ts` makes results of both.
 */
import type * as z from "zod";
import type { Task, TaskEngine } from "../tasks/engine.ts";
import type { TransferEngine } from "../transfer/engine.ts";
import type { Links } from "../transfer/links.ts";

export interface ToolContext {
  readonly principal: string;
  /** Aborts when the caller has gone. For waiting only: what was begun is finished, since a lost answer is asked for again. */
  readonly signal: AbortSignal;
  /** Stands in the log beside the cause of an `internal_error`. */
  readonly requestId: string;
  readonly engine: TransferEngine;
  readonly links: Links;
  /** Left out where the server offers no tasks, and so no tool that needs them. */
  readonly tasks?: TaskEngine;
}

/** All four are always given: the defaults of the specification would call a reading tool destructive. */
export interface ToolAnnotations {
  readonly readOnlyHint: boolean;
  readonly destructiveHint: boolean;
  readonly idempotentHint: boolean;
  readonly openWorldHint: boolean;
}

/** What a successful call tells, as JSON; members without a value are left out. */
export interface ToolFacts {
  readonly status: string;
  /** A sentence to follow literally: it names the tool with its arguments, or the command. */
  readonly nextStep: string;
  readonly [fact: string]: unknown;
}

export interface ResourceLink {
  readonly type: "resource_link";
  readonly uri: string;
  readonly name: string;
  readonly mimeType?: string;
  readonly size?: number;
}

interface ToolAnswer {
  readonly facts: ToolFacts;
  /** Content items beside the text; the text says the same without them. */
  readonly links?: readonly ResourceLink[];
}

export interface ToolDefinition<Input extends z.ZodObject = z.ZodObject> {
  /** At most 32 characters of `a-z_`. */
  readonly name: string;
  readonly title: string;
  /** At most 2,048 bytes; the first sentence says what to do with large files. */
  readonly description: string;
  readonly annotations: ToolAnnotations;
  /** An object without unions. Checked by `call-tool.ts`, never by an SDK, whose refusals lack the envelope. */
  readonly inputSchema: Input;
  /** An open object that requires only `status`, so that failures fit it too. */
  readonly outputSchema: z.ZodObject;
  /** Answers within 45 s. Throws `TransferError`. */
  handler(args: z.output<Input>, context: ToolContext): Promise<ToolAnswer>;
  /**
   * Only of a tool whose work is a task: begins it for a face that hands out the task itself. `handler` begins the same task and
   * tells of it. `ttlMs`: how long the caller wants the ended task kept; null leaves it to the server.
   */
  starts?(args: z.output<Input>, context: ToolContext, ttlMs: number | null): Promise<Task>;
}

/** Gives the handler the types of its arguments. */
export function defineTool<Input extends z.ZodObject>(tool: ToolDefinition<Input>): ToolDefinition<Input> {
  return tool;
}
