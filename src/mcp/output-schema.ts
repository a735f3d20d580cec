/**
 * Output schemas: open objects that require only `status` and know `error`, so that a success and a failure of the same tool both
 * validate. (Clients of the 2025 revisions validate failures too, and throw where they do not fit.) The facts are told for
 * those who plan with them, never required.
 */
import * as z from "zod";

const error = z
  .looseObject({
    code: z.string().optional(),
    message: z.string().optional(),
    retryable: z.boolean().optional(),
    recoveryHint: z.string().optional(),
  })
  .optional()
  .describe("Only in a failed call (status failed): what went wrong and how to recover.");

export function outputSchema(facts: z.ZodRawShape = {}): z.ZodObject {
  return z.looseObject({ status: z.string(), error, nextStep: z.string().optional(), ...facts });
}

const bytes = z.number().optional();
const text = z.string().optional();

/** What every result about one transfer tells. */
export const transferFactSchemas = {
  handle: text,
  offset: bytes.describe("Next byte expected."),
  size: bytes.describe("Total bytes; absent while unknown."),
  expiresAt: text,
};

export const sha256Fact = text.describe("Hex digest of the whole file, once complete.");

const urls = z.looseObject({ tus: text, put: text }).optional();
const commands = z.looseObject({ curl: text, cli: text }).optional();

export const commandsFact = commands;

/** `upload_create` and `upload_resume`. */
export const invitationSchema = outputSchema({
  ...transferFactSchemas,
  filename: text,
  sha256: sha256Fact,
  upload: urls,
  commands,
  allowHost: text.describe("Host that the network must allow."),
  inline: z.looseObject({ tool: text, maxChunkBytes: bytes, maxFileBytes: bytes }).optional(),
});
