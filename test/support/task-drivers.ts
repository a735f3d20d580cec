/**
 * Ways in which clients drive a task to its end, each from a client that is connected already: over whatever transport, a test reads the
 * same of all of them.
 */
import type { Client as ClientV2 } from "@modelcontextprotocol/client";
import {
  createApplicationInputHandler,
  createTaskSessionFromClient,
} from "@modelcontextprotocol/ext-tasks/client";
import type { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";

type Args = Record<string, unknown>;

interface ToolResult {
  readonly isError?: boolean | undefined;
  readonly structuredContent?: unknown;
  readonly content?: unknown;
  readonly [member: string]: unknown;
}

/** What came of a task, as its client saw it. */
export interface Outcome {
  /** By the client's protocol: a job's failure is `completed` in the extension. */
  readonly status: string;
  /** The final result; null where the protocol gives none. */
  readonly result: ToolResult | null;
}

export interface TaskDriver {
  /** Starts, answers each question with `answer`, waits for the end. */
  run(tool: string, args: Args, answer?: string): Promise<Outcome>;
  /** Starts, waits until the task is known, cancels, waits for the end. */
  cancel(tool: string, args: Args): Promise<Outcome>;
}

/** What a client of either generation can do with a plain call. */
export interface Caller {
  callTool(params: { name: string; arguments: Args }): Promise<unknown>;
}

/** The tools alone, as a model uses them, by `nextStep` and what it names. */
export function facadeDriver(client: Caller): TaskDriver {
  const call = async (name: string, args: Args): Promise<ToolResult & { facts: Record<string, unknown> }> => {
    const result = (await client.callTool({ name, arguments: args })) as ToolResult;
    return { ...result, facts: result.structuredContent as Record<string, unknown> };
  };
  const follow = async (taskId: unknown, answer?: string): Promise<Outcome> => {
    for (;;) {
      const result = await call("durable_task_get", { taskId, waitMs: 20_000 });
      const { status, inputRequest } = result.facts;
      if (status === "input_required") {
        const inputId = (inputRequest as { id: string }).id;
        await call("durable_task_respond", { taskId, inputId, response: answer });
      } else if (status !== "working") return { status: String(status), result };
    }
  };
  return {
    async run(tool, args, answer) {
      return follow((await call(tool, args)).facts.taskId, answer);
    },
    async cancel(tool, args) {
      const { taskId } = (await call(tool, args)).facts;
      await call("durable_task_cancel", { taskId });
      return follow(taskId);
    },
  };
}

/** Core tasks of 2025-11-25 with the v1 client; questions are answered by the tool unless the client elicits. */
export function coreDriver(client: ClientV1, elicits = false): TaskDriver {
  const { tasks } = client.experimental;
  const start = async (name: string, args: Args): Promise<string> => {
    const stream = tasks.callToolStream({ name, arguments: args }, CallToolResultSchema, {
      task: { ttl: 60_000 },
    });
    for await (const message of stream) {
      if (message.type === "taskCreated") return message.task.taskId;
      if (message.type === "error") throw message.error;
    }
    throw new Error("no task was created");
  };
  const finish = async (taskId: string): Promise<Outcome> => {
    const result = (await tasks.getTaskResult(taskId, CallToolResultSchema)) as ToolResult;
    return { status: (await tasks.getTask(taskId)).status, result };
  };
  return {
    async run(name, args, answer) {
      const taskId = await start(name, args);
      if (answer !== undefined && !elicits) {
        while ((await tasks.getTask(taskId)).status !== "input_required")
          await new Promise((resolve) => setTimeout(resolve, 20));
        await client.callTool({ name: "durable_task_respond", arguments: { taskId, response: answer } });
      }
      return finish(taskId);
    },
    async cancel(name, args) {
      const taskId = await start(name, args);
      await tasks.cancelTask(taskId);
      return finish(taskId);
    },
  };
}

const clientInfo = { name: "test", version: "1" };
const protocolVersion = "2026-07-28";
export const extensionCapabilities = {
  elicitation: { form: {} },
  extensions: { "io.modelcontextprotocol/tasks": {} },
};

type SessionOptions = Parameters<typeof createTaskSessionFromClient>[1];
type Dispatch = NonNullable<SessionOptions["rawDispatch"]>;

/** One request of 2026-07-28 over HTTP, answered as it came: the SDK's client would not give a task's result through. */
export function httpDispatch(url: string, headers: Record<string, string> = {}): Dispatch {
  let id = 1_000;
  return async (request, options) => {
    const { method, params } = request as { method: string; params: { name?: string; taskId?: string } };
    const name = params.name ?? params.taskId;
    id += 1;
    const response = await fetch(url, {
      method: "POST",
      signal: options?.signal ?? null,
      headers: {
        "Content-Type": "application/json",
        Accept: "application/json, text/event-stream",
        "MCP-Protocol-Version": protocolVersion,
        "Mcp-Method": method,
        ...(name !== undefined && { "Mcp-Name": name }),
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id, ...(request as object) }),
    });
    const text = await response.text();
    const json = text.startsWith("{")
      ? text
      : (text
          .match(/^data: (.+)$/gm)
          ?.at(-1)
          ?.slice(6) ?? "");
    const answer = JSON.parse(json);
    return answer.error === undefined
      ? { kind: "result", result: answer.result }
      : { kind: "error", error: answer.error };
  };
}

/** `io.modelcontextprotocol/tasks` with its official client. */
export function extensionDriver(client: ClientV2, dispatch: Dispatch): TaskDriver {
  let answer = "";
  const session = createTaskSessionFromClient(client, {
    endpointId: "test",
    rawDispatch: dispatch,
    v2RequestFraming: { protocolVersion, clientInfo, clientCapabilities: extensionCapabilities },
    onInputRequest: createApplicationInputHandler({
      elicitation: async () => ({ action: "accept", content: { answer } }),
      sampling: async () => {
        throw new Error("nothing here samples");
      },
      roots: async () => ({ roots: [] }),
    }),
  });
  type Execution = Awaited<ReturnType<typeof session.callTool>>;
  const settle = async (execution: Execution): Promise<Outcome> => {
    const { outcome } = await execution.settle();
    return {
      status: outcome.status,
      result: outcome.status === "completed" ? (outcome.result as ToolResult) : null,
    };
  };
  return {
    async run(tool, args, given = "") {
      answer = given;
      return settle(await session.callTool(tool, args as never));
    },
    async cancel(tool, args) {
      const execution = await session.callTool(tool, args as never);
      await execution.cancel();
      return settle(execution);
    },
  };
}
