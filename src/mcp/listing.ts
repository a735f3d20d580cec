/** Tools as `tools/list` tells them. Made once: schemas do not change, and each request would pay for them again. */
import * as z from "zod";
import type { ToolAnnotations, ToolDefinition } from "./tool-definition.ts";

export interface ListedTool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly annotations: ToolAnnotations;
  readonly inputSchema: ObjectSchema;
  readonly outputSchema: ObjectSchema;
}

/** JSON Schema 2020-12 with an object at its root. */
interface ObjectSchema {
  readonly type: "object";
  readonly [keyword: string]: unknown;
}

export function listTool(tool: ToolDefinition): ListedTool {
  const { name, title, description, annotations, inputSchema, outputSchema } = tool;
  return {
    name,
    title,
    description,
    annotations,
    inputSchema: objectSchema(inputSchema, "input"),
    outputSchema: objectSchema(outputSchema, "output"),
  };
}

function objectSchema(schema: z.ZodObject, io: "input" | "output"): ObjectSchema {
  // The dialect is the one that MCP takes for granted; naming it in every schema would only cost the model's attention.
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, { target: "draft-2020-12", io });
  return { ...json, type: "object" };
}
