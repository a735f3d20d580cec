/** What the tools that start work on files have in common in their schemas. */
import * as z from "zod";

export const idempotencyKeyArgument = z
  .string()
  .min(1)
  .max(255)
  .optional()
  .describe("Any string of your own; a repeat with the same key and arguments gives the same task.");

/** A result that is a stored file. */
export const storedFileSchemas = {
  handle: z.string().optional().describe("Of the stored file."),
  filename: z.string().optional(),
  size: z.number().optional(),
  sha256: z.string().optional(),
};
