/**
 * Schemas for `registerTool` of either SDK: listed as the tool's own JSON Schema, and taking every object, so that arguments are checked
 * by `arguments.ts` and refused with the envelope, never by the SDK.
 */
import * as z from "zod";

/** @param json asked once for each listing at most; it must be an object's schema. */
export function listedAs(json: () => object): z.ZodObject {
  const schema = z.looseObject({});
  // Zod's own way to say a schema's JSON, which every copy of zod that an SDK may bring along goes by. The registry behind `meta()` is
  // one copy's own.
  // It works on what it is given, so it gets a copy.
  schema._zod.toJSONSchema = () => structuredClone(json());
  // The same for the v2 SDK, which asks by this interface for each server and each list; zod's own way would take most of the time.
  const standard = schema["~standard"];
  const jsonSchema = { input: json, output: json };
  Object.defineProperty(schema, "~standard", { value: { ...standard, jsonSchema } });
  return schema;
}
