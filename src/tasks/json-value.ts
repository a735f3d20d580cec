/**
 * Values on their way into a record: exactly JSON, or refused with the place that is not. JSON.stringify alone would drop, round or
 * rewrite what it does not know (`undefined`, NaN, a Date), and a replay would go on with something else than the first run had.
 */
import type { JsonValue } from "./engine.ts";

const maxJsonBytes = 1 << 20;
const maxDepth = 200;

/** Says what is not JSON about a value, and where. */
export class NotJson extends Error {
  override readonly name = "NotJson";
}

/** The JSON text of a value; null for `undefined`, which a record keeps as nothing. `what` begins the message of an error. */
export function jsonText(value: unknown, what: string): string | null {
  if (value === undefined) return null;
  const problem = problemIn(value, "", 0, new Set());
  if (problem !== null) throw new NotJson(`${what} is not JSON: ${problem}.`);
  const text = JSON.stringify(value);
  const bytes = Buffer.byteLength(text);
  if (bytes > maxJsonBytes) {
    throw new NotJson(
      `${what} is ${bytes} bytes of JSON; at most ${maxJsonBytes} are kept. Store it as a file and return its handle.`,
    );
  }
  return text;
}

/** Text that `jsonText` wrote, as a value of its own. */
export function parsedJson(text: string | null): JsonValue | undefined {
  return text === null ? undefined : (JSON.parse(text) as JsonValue);
}

/** The same text for equal values, whatever the order of their keys. */
export function canonicalJson(value: JsonValue): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    isObject(inner) && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
      : inner,
  );
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function problemIn(value: unknown, path: string, depth: number, above: Set<object>): string | null {
  const at = path === "" ? "the value" : path;
  switch (typeof value) {
    case "string":
    case "boolean":
      return null;
    case "number":
      return Number.isFinite(value) ? null : `${at} is ${value}`;
    case "undefined":
      return `${at} is undefined (leave it out, or use null)`;
    case "object":
      return value === null ? null : problemInObject(value, at, path, depth, above);
    default:
      return `${at} is a ${typeof value}`;
  }
}

function problemInObject(
  value: object,
  at: string,
  path: string,
  depth: number,
  above: Set<object>,
): string | null {
  if (above.has(value)) return `${at} contains itself`;
  if (depth >= maxDepth) return `${at} is nested deeper than ${maxDepth} levels`;
  above.add(value);
  let problem: string | null = null;
  if (Array.isArray(value)) {
    // By number, since `forEach` and `entries` pass over holes.
    for (let index = 0; index < value.length && problem === null; index += 1) {
      problem = problemIn(value[index], `${path}[${index}]`, depth + 1, above);
    }
  } else if (!isPlain(value)) {
    problem = `${at} is a ${value.constructor?.name ?? "class instance"}, not a plain object`;
  } else if ("toJSON" in value) {
    problem = `${at} has a toJSON method`;
  } else if (Object.getOwnPropertySymbols(value).length > 0) {
    problem = `${at} has a symbol for a key`;
  } else {
    for (const [key, inner] of Object.entries(value)) {
      problem = problemIn(inner, path === "" ? key : `${path}.${key}`, depth + 1, above);
      if (problem !== null) break;
    }
  }
  above.delete(value);
  return problem;
}

/** Of any realm: its prototype is an Object.prototype, or it has none. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null) return true;
  return (
    isObject(prototype) &&
    Object.getPrototypeOf(prototype) === null &&
    Object.hasOwn(prototype, "isPrototypeOf")
  );
}
