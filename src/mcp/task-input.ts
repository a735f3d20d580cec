/**
 * A task's questions as `elicitation/create` requests, and what clients and models answer to them. Elicitation knows forms alone, so a
 * question without a schema of its own becomes a form with the one field `answer`.
 */
import type { InputAnswer, InputRequest, JsonValue } from "../tasks/engine.ts";

/** `elicitation/create` in form mode (2025-11-25 and 2026-07-28, client/elicitation). */
export interface ElicitationRequest {
  readonly method: "elicitation/create";
  readonly params: {
    readonly mode: "form";
    readonly message: string;
    readonly requestedSchema: { readonly [keyword: string]: JsonValue };
  };
}

const field = "answer";

export function toElicitation({ prompt, choices, schema }: InputRequest): ElicitationRequest {
  const answer = { type: "string", title: "Answer", ...(choices !== null && { enum: choices }) } as const;
  const form: { readonly [keyword: string]: JsonValue } = {
    type: "object",
    properties: { [field]: answer },
    required: [field],
  };
  return {
    method: "elicitation/create",
    params: { mode: "form", message: prompt, requestedSchema: isObject(schema) ? schema : form },
  };
}

/** The answer in an `ElicitResult`; null where it is none. */
export function fromElicitResult(question: InputRequest, result: unknown): InputAnswer | null {
  if (!isObject(result)) return null;
  const { action, content } = result;
  if (action === "decline") return { action: "decline" };
  if (action === "cancel") return { action: "cancel" };
  if (action !== "accept" || !isObject(content)) return null;
  return { action: "accept", value: question.schema === null ? (content[field] ?? null) : content };
}

/**
 * The answers that a model may mean with the `response` of a tool call, in the order in which to try them. Where the question is not
 * open any more, which a repeated call finds, its form is not known either.
 */
export function meantBy(response: JsonValue, question: InputRequest | undefined): readonly JsonValue[] {
  if (typeof response === "string") {
    if (question !== undefined && question.schema === null) return [response];
    const parsed = jsonObject(response);
    if (parsed === null) return [response];
    return question === undefined ? [parsed, response] : [parsed];
  }
  if (typeof response === "number" || typeof response === "boolean") return [String(response)];
  return [response];
}

/** Whether a client's capabilities hold form elicitation: an empty object means forms, from the time before modes. */
export function elicitsForms(capabilities: unknown): boolean {
  const elicitation = isObject(capabilities) ? capabilities.elicitation : undefined;
  return isObject(elicitation) && (isObject(elicitation.form) || !("url" in elicitation));
}

function jsonObject(text: string): JsonValue | null {
  try {
    const parsed: unknown = JSON.parse(text);
    return isObject(parsed) ? parsed : null;
  } catch {
    return null;
  }
}

/** What came as JSON holds JSON. */
export function isObject(value: unknown): value is { readonly [member: string]: JsonValue } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
