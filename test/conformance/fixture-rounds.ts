/** The fixture tools of the suite that ask the caller in rounds (`input_required`), with a state that the caller carries and cannot forge. */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import {
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
} from "@modelcontextprotocol/server";
import type { Call, ProtocolTool } from "../../src/mcp/served.ts";
import { declaredCapabilities } from "../../src/mcp/task-extension.ts";
import { isObject } from "../../src/mcp/task-input.ts";

interface Question {
  readonly method: string;
  readonly params: object;
}

/** Questions by key. */
type Round = Readonly<Record<string, Question>>;

export const form = (message: string, name: string, type: string): Question => ({
  method: "elicitation/create",
  params: {
    mode: "form",
    message,
    requestedSchema: { type: "object", properties: { [name]: { type } }, required: [name] },
  },
});

const sampling = (text: string): Question => ({
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: { type: "text", text } }], maxTokens: 100 },
});

const roots: Question = { method: "roots/list", params: {} };

const secret = randomBytes(32);

function sealed(round: number): string {
  const mac = createHmac("sha256", secret).update(String(round)).digest("base64url");
  return `${round}.${mac}`;
}

function opened(state: string): number {
  const round = Number(state.split(".")[0]);
  const [given, good] = [Buffer.from(state), Buffer.from(sealed(round))];
  if (given.length === good.length && timingSafeEqual(given, good)) return round;
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, "The requestState is not one of this server.");
}

/** What the questions of each round need of the client; what it did not declare is not asked for. */
const capabilityOf: Readonly<Record<string, string>> = {
  "elicitation/create": "elicitation",
  "sampling/createMessage": "sampling",
  "roots/list": "roots",
};

function askable(round: Round, call: Call): Round {
  const declared = declaredCapabilities(call.context);
  const can = ({ method }: Question) => isObject(declared) && (capabilityOf[method] ?? "") in declared;
  return Object.fromEntries(Object.entries(round).filter(([, question]) => can(question)));
}

/** Asks round after round, and answers once all of the last one is there. */
function asking(name: string, rounds: readonly Round[], done: string): ProtocolTool {
  const call = (call: Call): Result => {
    const { inputResponses = {}, requestState } = call.context.mcpReq;
    const state = requestState();
    const reached = typeof state === "string" ? opened(state) : 0;
    const asked = Object.keys(askable(rounds[reached] ?? {}, call));
    const complete = asked.length > 0 && asked.every((key) => key in inputResponses);
    const next = complete ? reached + 1 : reached;
    const round = rounds[next];
    if (round === undefined)
      return { content: [{ type: "text", text: `${done} ${JSON.stringify(inputResponses)}` }] };
    return {
      resultType: "input_required",
      inputRequests: askable(round, call),
      requestState: sealed(next),
    };
  };
  const description = `The fixture ${name} of the conformance suite.`;
  return { listed: { name, description, inputSchema: { type: "object", properties: {} } }, call };
}

function needsSampling(call: Call): Result {
  const declared = declaredCapabilities(call.context);
  if (!isObject(declared) || !("sampling" in declared))
    throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } });
  return { content: [{ type: "text", text: "The client can sample." }] };
}

const named = (suffix: string): string => `test_input_required_result_${suffix}`;
const userName: Round = { user_name: form("What is your name?", "name", "string") };
const confirm: Round = { confirm: form("Please confirm", "ok", "boolean") };

export const roundTools: readonly ProtocolTool[] = [
  asking(named("elicitation"), [userName], "Hello"),
  asking(named("sampling"), [{ capital_question: sampling("What is the capital of France?") }], "Answered:"),
  asking(named("list_roots"), [{ client_roots: roots }], "Roots:"),
  asking(named("request_state"), [confirm], "state-ok"),
  asking(named("tampered_state"), [confirm], "Confirmed:"),
  asking(
    named("multiple_inputs"),
    [{ ...userName, greeting: sampling("Generate a greeting"), client_roots: roots }],
    "All:",
  ),
  asking(
    named("multi_round"),
    [
      { step1: form("Step 1: What is your name?", "name", "string") },
      { step2: form("Step 2: What is your favorite color?", "color", "string") },
    ],
    "Done:",
  ),
  asking(named("capabilities"), [{ ...userName, greeting: sampling("Generate a greeting") }], "All:"),
  asking("test_streaming_elicitation", [userName], "Hello"),
  {
    listed: {
      name: "test_missing_capability",
      description: "The fixture test_missing_capability of the conformance suite.",
      inputSchema: { type: "object", properties: {} },
    },
    call: needsSampling,
  },
];
