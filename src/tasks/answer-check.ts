/**
 * Whether an answer fits its question: one of its choices to the letter, or an object that fits the flat schema which MCP
 * elicitation knows (strings, numbers, booleans, enumerations, lists of enumerated strings). What a schema says beyond that
 * is left to the handler.
 */
import { TransferError } from "../errors.ts";
import type { InputAnswer, JsonValue } from "./engine.ts";
import { canonicalJson, jsonText } from "./json-value.ts";
import type { QuestionRecord } from "./records.ts";

type JsonObject = { readonly [key: string]: JsonValue };

/** The answer's JSON text, the same for equal answers. Throws `invalid_param` (`response`) where it does not fit. */
export function checkedAnswer(question: QuestionRecord, answer: InputAnswer): string {
  if (answer.action !== "accept") return canonicalJson({ action: answer.action });
  const { value } = answer;
  const problem = problemWith(question, value) ?? notJson(value);
  if (problem !== null) throw refused(question, problem);
  return canonicalJson({ action: "accept", value });
}

function refused(question: QuestionRecord, problem: string): TransferError {
  const choices = question.choices?.map((choice) => JSON.stringify(choice)).join(", ");
  return new TransferError(
    "invalid_param",
    `That is no answer to '${question.prompt.slice(0, 200)}': ${problem}.`,
    {
      param: "response",
      recoveryHint:
        choices !== undefined
          ? `Answer with exactly one of ${choices}.`
          : question.schema !== null
            ? `Answer with an object that fits this schema: ${question.schema}`
            : "Answer with a string.",
    },
  );
}

function notJson(value: JsonValue): string | null {
  try {
    jsonText(value, "the answer");
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function problemWith(question: QuestionRecord, value: JsonValue): string | null {
  if (question.schema !== null) {
    // Written by this engine from a schema that was JSON.
    const schema = JSON.parse(question.schema) as JsonValue;
    return isObject(schema) ? problemWithObject(schema, value) : null;
  }
  if (typeof value !== "string") return "it is not a string";
  if (question.choices !== null && !question.choices.includes(value)) return "it is none of the choices";
  return null;
}

function problemWithObject(schema: JsonObject, value: JsonValue): string | null {
  if (!isObject(value)) return "it is not an object";
  const properties = objectIn(schema, "properties");
  const required = Array.isArray(schema.required) ? schema.required : [];
  for (const name of required) {
    if (typeof name === "string" && !Object.hasOwn(value, name)) return `'${name}' is missing`;
  }
  for (const [name, inner] of Object.entries(value)) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (property === undefined) {
      if (schema.additionalProperties === false) return `'${name}' is not asked for`;
    } else if (isObject(property)) {
      const problem = problemWithProperty(property, inner);
      if (problem !== null) return `'${name}' ${problem}`;
    }
  }
  return null;
}

function problemWithProperty(schema: JsonObject, value: JsonValue): string | null {
  const allowed = allowedValues(schema);
  if (allowed !== null && !allowed.includes(value)) return `is not one of ${JSON.stringify(allowed)}`;
  switch (schema.type) {
    case "string":
      return typeof value === "string" ? problemWithString(schema, value) : "is not a string";
    case "integer":
      return Number.isInteger(value) ? problemWithNumber(schema, Number(value)) : "is not an integer";
    case "number":
      return typeof value === "number" ? problemWithNumber(schema, value) : "is not a number";
    case "boolean":
      return typeof value === "boolean" ? null : "is neither true nor false";
    case "array":
      return Array.isArray(value) ? problemWithList(schema, value) : "is not a list";
    default:
      return null;
  }
}

function problemWithString(schema: JsonObject, value: string): string | null {
  const { minLength, maxLength } = schema;
  if (typeof minLength === "number" && value.length < minLength)
    return `has fewer than ${minLength} characters`;
  if (typeof maxLength === "number" && value.length > maxLength)
    return `has more than ${maxLength} characters`;
  switch (schema.format) {
    case "email":
      return /^[^\s@]+@[^\s@]+$/.test(value) ? null : "is not an e-mail address";
    case "uri":
      return URL.canParse(value) ? null : "is not a URI";
    case "date":
      return /^\d{4}-\d{2}-\d{2}$/.test(value) && isTime(value) ? null : "is not a date such as 2026-01-31";
    case "date-time":
      return /^\d{4}-\d{2}-\d{2}T/.test(value) && isTime(value)
        ? null
        : "is not a time such as 2026-01-31T12:00:00Z";
    default:
      return null;
  }
}

function problemWithNumber(schema: JsonObject, value: number): string | null {
  const { minimum, maximum } = schema;
  if (typeof minimum === "number" && value < minimum) return `is less than ${minimum}`;
  if (typeof maximum === "number" && value > maximum) return `is more than ${maximum}`;
  return null;
}

function problemWithList(schema: JsonObject, value: readonly JsonValue[]): string | null {
  const { minItems, maxItems, items } = schema;
  if (typeof minItems === "number" && value.length < minItems) return `has fewer than ${minItems} entries`;
  if (typeof maxItems === "number" && value.length > maxItems) return `has more than ${maxItems} entries`;
  if (items === undefined || !isObject(items)) return null;
  for (const inner of value) {
    const problem = problemWithProperty(items, inner);
    if (problem !== null) return `has an entry that ${problem}`;
  }
  return null;
}

/** `enum`, `const`, and titled choices (`oneOf` or `anyOf` of constants); null where any value is. */
function allowedValues(schema: JsonObject): readonly JsonValue[] | null {
  if (Array.isArray(schema.enum)) return schema.enum;
  if (schema.const !== undefined) return [schema.const];
  const titled = schema.oneOf ?? schema.anyOf;
  if (!Array.isArray(titled)) return null;
  const constants = titled.map((one: JsonValue) => (isObject(one) ? one.const : undefined));
  return constants.every((one) => one !== undefined) ? constants : null;
}

function objectIn(schema: JsonObject, key: string): JsonObject {
  const found = schema[key];
  return found !== undefined && isObject(found) ? found : {};
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isTime(text: string): boolean {
  return !Number.isNaN(Date.parse(text));
}
