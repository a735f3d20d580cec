/** The fixture tools of the suite that answer in terms of the protocol, and not in those of this server's own tools. */
import type { Result, ServerContext, Tool } from "@modelcontextprotocol/server";
import type { Call, ProtocolTool } from "../../src/mcp/served.ts";
import { declaredCapabilities, declaresTasks, tasksNotDeclared } from "../../src/mcp/task-extension.ts";
import { isObject } from "../../src/mcp/task-input.ts";
import { startExtensionTask } from "../../src/mcp/tool-caller.ts";
import { form, roundTools } from "./fixture-rounds.ts";
import { failingJob, greetLater } from "./fixture-tasks.ts";

type Content = readonly { readonly type: string; readonly [member: string]: unknown }[];

const noArguments: Tool["inputSchema"] = { type: "object", properties: {} };

function protocolTool(
  name: string,
  call: (call: Call) => Promise<Result> | Result,
  inputSchema: Tool["inputSchema"] = noArguments,
): ProtocolTool {
  const description = `The fixture ${name} of the conformance suite.`;
  return { listed: { name, description, inputSchema }, call };
}

const answering = (name: string, content: Content, more: Result = {}): ProtocolTool =>
  protocolTool(name, () => ({ ...more, content }));

const text = (words: string): Content => [{ type: "text", text: words }];

/** One red pixel. */
const png =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/** A wave file without a sample. */
const wav = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

const image = { type: "image", data: png, mimeType: "image/png" } as const;
const resource = (uri: string, mimeType: string, words: string) =>
  ({ type: "resource", resource: { uri, mimeType, text: words } }) as const;

async function reportProgress({ context }: Call): Promise<Result> {
  const { _meta, notify } = context.mcpReq;
  const progressToken = _meta?.progressToken;
  for (const progress of [0, 50, 100]) {
    if (progressToken !== undefined)
      await notify({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return { content: text("Done.") };
}

/** Only as a task: who cannot take one is told what to declare. */
async function onlyAsTask(call: Call): Promise<Result> {
  if (!declaresTasks(declaredCapabilities(call.context))) throw tasksNotDeclared();
  return startExtensionTask(failingJob, call);
}

/** Asks before there is a task (multi round-trip), and starts the task with the answer. */
async function askThenStart(call: Call): Promise<Result> {
  const name = answeredName(call.context);
  if (name === null)
    return {
      resultType: "input_required",
      inputRequests: { user_name: form("Your name?", "name", "string") },
    };
  return startExtensionTask(greetLater, { ...call, args: { name } });
}

function answeredName({ mcpReq }: ServerContext): string | null {
  const answer: unknown = mcpReq.inputResponses?.user_name;
  const content = isObject(answer) ? answer.content : undefined;
  return isObject(content) && typeof content.name === "string" ? content.name : null;
}

/** With all keywords of JSON Schema 2020-12 that a list of tools must not lose. */
const richSchema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
} as const;

export const protocolTools: readonly ProtocolTool[] = [
  protocolTool(
    "greet",
    ({ args }) => ({ content: text(`Hello, ${isObject(args) ? args.name : "nobody"}!`) }),
    { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
  ),
  protocolTool("failing_job", onlyAsTask),
  protocolTool("test_tool_with_task", askThenStart),
  protocolTool("test_tool_with_progress", reportProgress),
  answering("test_simple_text", text("This is a simple text response for testing.")),
  answering("test_image_content", [image]),
  answering("test_audio_content", [{ type: "audio", data: wav, mimeType: "audio/wav" }]),
  answering("test_embedded_resource", [
    resource("test://embedded-resource", "text/plain", "This is an embedded resource content."),
  ]),
  answering("test_multiple_content_types", [
    ...text("Multiple content types test:"),
    image,
    resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
  ]),
  answering("test_error_handling", text("This tool intentionally returns an error for testing"), {
    isError: true,
  }),
  protocolTool("test_logging_tool", async ({ context }) => {
    await context.mcpReq.log("info", "Only for those who asked for a log.");
    return { content: text("Done.") };
  }),
  protocolTool("json_schema_2020_12_tool", () => ({ content: text("Done.") }), richSchema as never),
  ...roundTools,
];
