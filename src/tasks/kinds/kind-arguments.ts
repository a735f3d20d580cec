/** Arguments of a task, checked once more: a task may have been started without the tool, or by another version of it. */
import type * as z from "zod";
import { TransferError } from "../../errors.ts";
import type { JsonValue } from "../engine.ts";

/** @throws TransferError `invalid_param` for the first fault. */
export function kindArguments<Schema extends z.ZodObject>(schema: Schema, args: JsonValue): z.output<Schema> {
  const checked = schema.safeParse(args);
  if (checked.success) return checked.data;
  const [issue] = checked.error.issues;
  const param = issue?.path.map(String).join(".") || "arguments";
  throw new TransferError("invalid_param", `${param}: ${issue?.message ?? "It is not valid."}`, { param });
}
