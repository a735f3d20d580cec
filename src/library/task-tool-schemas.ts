/** Schemas of a user's task tool: what it takes besides the user's own arguments, and its result inside of the facts about the task. */
import * as z from "zod";
import { taskOutputSchema } from "../mcp/task-output.ts";
import type { JsonObject, UserSchema } from "./user-schema.ts";

const keyName = "idempotencyKey";

const keyJson = {
  type: "string",
  minLength: 1,
  maxLength: 255,
  description: "The same key and arguments give the same task: send it again where an answer was lost.",
};

/**
 * Lets the names through and everything by them: the user's own schema checks, but null for an absent argument and names that nobody
 * knows are treated as in every other tool.
 *
 * @throws TypeError
 */
export function argumentNames(input: UserSchema, toolName: string): z.ZodObject {
  const names = Object.keys(membersOf(input.json("input")));
  if (names.includes(keyName))
    throw new TypeError(`inputSchema of '${toolName}': ${keyName} is added by itself, so leave it out.`);
  const shape = Object.fromEntries(names.map((name) => [name, z.unknown().optional()]));
  return z.object({ ...shape, [keyName]: z.string().min(1).max(255).optional() });
}

export function listedInput(input: UserSchema): JsonObject {
  // Unknown arguments are passed over and named in the answer, so the list does not forbid them.
  const { additionalProperties: _, ...json } = input.json("input");
  return { ...json, properties: { ...membersOf(json), [keyName]: keyJson } };
}

let withoutResult: JsonObject | undefined;

export function listedOutput(output: UserSchema | null): JsonObject {
  if (withoutResult === undefined) {
    const { $schema: _dialect, ...json } = z.toJSONSchema(taskOutputSchema(), { io: "output" });
    withoutResult = json;
  }
  if (output === null) return withoutResult;
  // Open and without demands: a result that is too long is stored as a file, and its place says where.
  const result = {
    type: "object",
    properties: membersOf(output.json("output")),
    description: "Once completed.",
  };
  return { ...withoutResult, properties: { ...membersOf(withoutResult), result } };
}

function membersOf({ properties }: JsonObject): JsonObject {
  return typeof properties === "object" && properties !== null ? (properties as JsonObject) : {};
}
