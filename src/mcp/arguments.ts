/**
 * Checks a call's arguments against the tool's schema, so that a fault is told in the envelope with the parameter's name.
 *
 * Lenient where it does no harm: null stands for an absent argument (some hosts send every optional one), and arguments that the
 * tool does not know are passed over but named to the caller, so that a misspelt `sha256` does not go unnoticed.
 */
import type * as z from "zod";
import { TransferError } from "../errors.ts";

export interface CheckedArguments<Input extends z.ZodObject> {
  readonly args: z.output<Input>;
  /** Names that the tool does not know; at most 10 of at most 64 characters. */
  readonly ignored: readonly string[];
}

/** @throws TransferError `invalid_param` for the first fault. */
export function checkArguments<Input extends z.ZodObject>(
  schema: Input,
  given: unknown,
): CheckedArguments<Input> {
  const known: Record<string, unknown> = {};
  const ignored: string[] = [];
  for (const [name, value] of Object.entries(asObject(given))) {
    if (!Object.hasOwn(schema.shape, name)) ignored.push(name);
    else if (value !== null) known[name] = value;
  }
  const checked = schema.safeParse(known, { error: explain });
  if (!checked.success) throw invalidParam(checked.error);
  return { args: checked.data, ignored: ignored.slice(0, 10).map((name) => name.slice(0, 64)) };
}

function asObject(given: unknown): object {
  if (given === undefined || given === null) return {};
  if (typeof given === "object" && !Array.isArray(given)) return given;
  throw new TransferError("invalid_param", "The arguments must be an object.", { param: "arguments" });
}

/** An absent argument deserves better than "expected string, received undefined". */
function explain(issue: z.core.$ZodRawIssue): string | undefined {
  return issue.code === "invalid_type" && issue.input === undefined ? "It is required." : undefined;
}

function invalidParam(error: z.ZodError): TransferError {
  const issue = error.issues[0];
  const param =
    issue === undefined || issue.path.length === 0 ? "arguments" : issue.path.map(String).join(".");
  const reason = issue?.message.replace(/^Invalid input: /, "").replace(/\.?$/, ".") ?? "It is not valid.";
  return new TransferError("invalid_param", `${param}: ${reason}`, { param });
}
