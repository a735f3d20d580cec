/** What a list of tools must keep to, so that every host can show it and every model can use it. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { instructions, instructionsWithTasks } from "../../src/mcp/instructions.ts";
import { listTool } from "../../src/mcp/listing.ts";
import { durableTaskTools } from "../../src/mcp/tools/durable-task-tools.ts";
import { fileTaskTools } from "../../src/mcp/tools/file-task-tools.ts";
import { fileTools } from "../../src/mcp/tools/file-tools.ts";

const listed = [...fileTools, ...fileTaskTools, ...durableTaskTools].map(listTool);

/** Every schema within a schema, with the path to it. */
function* subschemas(schema: unknown, path: string): Generator<[string, Record<string, unknown>]> {
  if (typeof schema !== "object" || schema === null) return;
  if (!Array.isArray(schema)) yield [path, schema as Record<string, unknown>];
  for (const [key, value] of Object.entries(schema)) yield* subschemas(value, `${path}/${key}`);
}

describe("the list of tools", () => {
  test("there are at most 16, each under a name of its own", () => {
    expect(listed.length).toBeLessThanOrEqual(16);
    expect(new Set(listed.map(({ name }) => name)).size).toBe(listed.length);
  });

  test("these are there, and nothing that does not work yet", () => {
    expect(listed.map(({ name }) => name)).toEqual([
      "upload_create",
      "upload_resume",
      "upload_write",
      "upload_status",
      "file_list",
      "file_read",
      "file_download",
      "file_delete",
      "file_import",
      "file_checksum",
      "file_archive",
      "file_extract",
      "durable_task_get",
      "durable_task_respond",
      "durable_task_cancel",
      "durable_task_list",
    ]);
  });

  test("the list costs a model less than 450 tokens a tool", () => {
    expect(JSON.stringify(listed).length).toBeLessThan(1_800 * listed.length);
  });

  test("the instructions are short and name only tools that exist", () => {
    expect(instructionsWithTasks.startsWith(instructions)).toBe(true);
    expect(instructionsWithTasks.length).toBeLessThan(2048);
    for (const [name] of instructionsWithTasks.matchAll(/\b(?:upload|file|durable_task)_[a-z]+/g)) {
      expect(listed.map((tool) => tool.name)).toContain(name);
    }
  });
});

describe.each(listed)("$name", (tool) => {
  test("has a name of at most 32 characters and a title", () => {
    expect(tool.name).toMatch(/^[a-z][a-z_]{0,31}$/);
    expect(tool.title.length).toBeGreaterThan(3);
  });

  test("has a description of at most 2 KB whose first sentence says what to do with large files", () => {
    expect(Buffer.byteLength(tool.description)).toBeLessThanOrEqual(2048);
    expect(tool.description.split(/[.:;]/)[0]).toMatch(/\blarge|\bany size/);
  });

  test("names only tools that exist in its description", () => {
    for (const [name] of tool.description.matchAll(/\b(?:upload|file|durable_task)_[a-z]+/g)) {
      expect(listed.map(({ name: known }) => known)).toContain(name);
    }
  });

  test("gives all four hints", () => {
    const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = tool.annotations;
    for (const hint of [readOnlyHint, destructiveHint, idempotentHint, openWorldHint])
      expect(hint).toBeTypeOf("boolean");
    if (readOnlyHint) expect(destructiveHint).toBe(false);
  });

  test.each(["inputSchema", "outputSchema"] as const)(
    "has an %s that is an object without unions and references",
    (kind) => {
      expect(tool[kind].type).toBe("object");
      expect(tool[kind]).not.toHaveProperty("$schema");
      for (const [path, schema] of subschemas(tool[kind], kind)) {
        for (const keyword of ["anyOf", "oneOf", "allOf", "not", "if", "$ref", "$defs", "definitions"]) {
          if (!/\/properties$/.test(path)) expect(Object.keys(schema), path).not.toContain(keyword);
        }
        expect(Array.isArray(schema.type), path).toBe(false);
      }
    },
  );

  test("describes every argument", () => {
    const { properties } = tool.inputSchema as { properties?: Record<string, { description?: string }> };
    for (const [name, schema] of Object.entries(properties ?? {})) {
      expect(schema.description?.length ?? 0, name).toBeGreaterThan(4);
    }
  });

  test("has an open output schema that requires only status and knows error", () => {
    expect(tool.outputSchema.required).toEqual(["status"]);
    expect(tool.outputSchema.additionalProperties).toEqual({});
    expect(tool.outputSchema.properties).toHaveProperty("error");
    const schema = z.fromJSONSchema(tool.outputSchema as Parameters<typeof z.fromJSONSchema>[0]);
    expect(schema.safeParse({ status: "failed", error: { code: "x", anything: [1] }, more: 1 }).success).toBe(
      true,
    );
    expect(schema.safeParse({ handle: "fh_" }).success).toBe(false);
  });
});
