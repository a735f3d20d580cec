/** The fixture tools of the suite whose work is a task: kinds for the engine, and the tools that start them. */
import * as z from "zod";
import { TransferError } from "../../src/errors.ts";
import { defineTaskTool } from "../../src/mcp/task-tool.ts";
import type { ToolDefinition } from "../../src/mcp/tool-definition.ts";
import type { JsonValue, TaskContext, TaskKind } from "../../src/tasks/engine.ts";

const annotations = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: false,
  openWorldHint: false,
};

interface Fixture {
  readonly tool: ToolDefinition;
  readonly kind: TaskKind;
}

function fixture<Input extends z.ZodObject>(
  name: string,
  inputSchema: Input,
  work: (args: z.output<Input>, context: TaskContext) => Promise<JsonValue>,
): Fixture {
  const handler = (args: JsonValue, context: TaskContext): Promise<JsonValue> =>
    work(inputSchema.parse(args), context);
  return {
    tool: defineTaskTool({
      name,
      title: name,
      description: `The fixture ${name} of the conformance suite.`,
      annotations,
      inputSchema,
      kind: name,
    }),
    kind: { kind: name, handler },
  };
}

const field = (name: string, type: string) => ({
  type: "object",
  properties: { [name]: { type } },
  required: [name],
});

const fixtures = {
  slowCompute: fixture(
    "slow_compute",
    z.object({ seconds: z.number().describe("How long."), label: z.string().optional().describe("Any.") }),
    async ({ seconds, label }, { sleep }) => {
      await sleep(seconds * 1_000);
      return { computed: label ?? null };
    },
  ),
  failingJob: fixture("failing_job", z.object({}), async (_args, { sleep }) => {
    await sleep(300);
    throw new Error("This job always fails.");
  }),
  protocolErrorJob: fixture("protocol_error_job", z.object({}), async () => {
    throw new TransferError("internal_error", "This job breaks the server.", {
      extra: { jsonRpcCode: -32_603 },
    });
  }),
  confirmDelete: fixture(
    "confirm_delete",
    z.object({ filename: z.string().describe("What to delete.") }),
    async ({ filename }, { needInput }) => ({
      answer: await needInput({ prompt: `Delete ${filename}?`, schema: field("confirm", "boolean") }),
    }),
  ),
  multiInput: fixture("multi_input", z.object({}), async (_args, { needInput }) => ({
    answers: await Promise.all([
      needInput({ prompt: "Your name?", schema: field("name", "string") }),
      needInput({ prompt: "Are you sure?", schema: field("confirm", "boolean") }),
    ]),
  })),
  greetLater: fixture(
    "test_tool_with_task",
    z.object({ name: z.string().describe("Whom to greet.") }),
    async ({ name }) => ({ greeting: `Hello, ${name}!` }),
  ),
};

/** Offered as they are. */
export const taskTools = [
  fixtures.slowCompute.tool,
  fixtures.protocolErrorJob.tool,
  fixtures.confirmDelete.tool,
  fixtures.multiInput.tool,
];

/** Offered behind something of the protocol's own (see `fixture-tools.ts`). */
export const failingJob = fixtures.failingJob.tool;
export const greetLater = fixtures.greetLater.tool;

export const taskKinds = Object.values(fixtures).map(({ kind }) => kind);
