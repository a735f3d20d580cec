/**
 * Schemas that users bring along: of zod 3 or 4, of whatever copy their SDK uses, as an object's schema or as the bare shape of one.
 * All that is asked of them is in the Standard Schema interface, and their JSON Schema.
 */
import * as z from "zod";
import { type ZodTypeAny as AnyV3, object as objectV3 } from "zod/v3";
import { zodToJsonSchema } from "zod-to-json-schema";
import { TransferError } from "../errors.ts";

/**
 * The part of every zod schema (3.25 and newer) by which its type is read.
 *
 * @example
 * const schema: AnySchema = z.string();
 */
export interface AnySchema {
  readonly "~standard": {
    readonly types?: { readonly input: unknown; readonly output: unknown } | undefined;
    readonly validate: (value: unknown) => Validated | Promise<Validated>;
  };
}

type Validated =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/**
 * An object's schema, or its members: `{ url: z.string() }`.
 *
 * @example
 * const members: ObjectSchema = { url: z.string(), depth: z.number().default(3) };
 * const whole: ObjectSchema = z.object({ url: z.url() });
 */
export type ObjectSchema = AnySchema | { readonly [member: string]: AnySchema };

type OutputOf<S> = S extends { readonly "~standard": { readonly types?: infer T } }
  ? NonNullable<T> extends { readonly output: infer Output }
    ? Output
    : unknown
  : unknown;

type InputOf<S> = S extends { readonly "~standard": { readonly types?: infer T } }
  ? NonNullable<T> extends { readonly input: infer Input }
    ? Input
    : unknown
  : unknown;

/** Members that may be undefined may be left out, as in zod's own objects. */
type WithOptional<Members> = {
  [Name in keyof Members as undefined extends Members[Name] ? never : Name]: Members[Name];
} & { [Name in keyof Members as undefined extends Members[Name] ? Name : never]?: Members[Name] };

/** Shown as one object in an editor. */
type Plain<Members> = { [Name in keyof Members]: Members[Name] };

/**
 * What a schema gives after its check, with its defaults filled in.
 *
 * @example
 * type Args = Checked<{ depth: z.ZodDefault<z.ZodNumber> }>; // { depth: number }
 */
export type Checked<S> = S extends AnySchema
  ? OutputOf<S>
  : Plain<WithOptional<{ [Name in keyof S]: OutputOf<S[Name]> }>>;

/**
 * What a schema takes: members with a default may be left out.
 *
 * @example
 * type Result = Unchecked<{ depth: z.ZodDefault<z.ZodNumber> }>; // { depth?: number }
 */
export type Unchecked<S> = S extends AnySchema
  ? InputOf<S>
  : Plain<WithOptional<{ [Name in keyof S]: InputOf<S[Name]> }>>;

export type JsonObject = { readonly [keyword: string]: unknown };

export interface UserSchema {
  /** Draft 2020-12 (zod 4) or 7 (zod 3), whose keywords for flat objects are the same. Worked out once, when asked. */
  json(io: "input" | "output"): JsonObject;
  /** @throws TransferError `invalid_param` with the first fault. */
  check(value: unknown): Promise<unknown>;
}

/** @throws TypeError where it is no object's schema. `what` begins the message. */
export function userSchema(given: ObjectSchema | undefined, what: string): UserSchema {
  const schema = given === undefined ? z.object({}) : isSchema(given) ? given : schemaOfShape(given, what);
  const known = new Map<string, JsonObject>();
  return {
    json(io) {
      const json = known.get(io) ?? jsonOf(schema, io);
      if (json.type !== "object") throw new TypeError(`${what} must be the schema of an object.`);
      known.set(io, json);
      return json;
    },
    async check(value) {
      const checked = await schema["~standard"].validate(value);
      if (checked.issues === undefined) return checked.value;
      throw invalidParam(checked.issues[0], value);
    },
  };
}

function isSchema(given: ObjectSchema): given is AnySchema {
  return "~standard" in given && typeof given["~standard"] === "object" && "validate" in given["~standard"];
}

function isV4(schema: AnySchema): boolean {
  return "_zod" in schema;
}

function schemaOfShape(shape: Readonly<Record<string, AnySchema>>, what: string): AnySchema {
  const members = Object.values(shape);
  if (!members.every((member) => typeof member === "object" && member !== null && isSchema(member)))
    throw new TypeError(`${what} must be a zod object, or an object whose members are zod schemas.`);
  // Schemas of any copy of zod 4 go together, and so do those of zod 3.
  if (members.every(isV4)) return z.object(shape as unknown as z.ZodRawShape);
  if (members.some(isV4)) throw new TypeError(`${what} mixes schemas of zod 3 and zod 4.`);
  return objectV3(shape as unknown as Record<string, AnyV3>);
}

function jsonOf(schema: AnySchema, io: "input" | "output"): JsonObject {
  const { $schema: _dialect, ...json } = isV4(schema)
    ? z.toJSONSchema(schema as unknown as z.ZodType, { target: "draft-2020-12", io })
    : // Without references: several hosts cannot follow them.
      zodToJsonSchema(schema as unknown as AnyV3, { $refStrategy: "none", pipeStrategy: io });
  return json as JsonObject;
}

function invalidParam(issue: SchemaIssue | undefined, value: unknown): TransferError {
  const path = (issue?.path ?? []).map((part) => (typeof part === "object" ? part.key : part));
  const param = path.length === 0 ? "arguments" : path.map(String).join(".");
  const absent = path.length > 0 && valueAt(value, path) === undefined;
  const reason = absent
    ? "It is required"
    : (issue?.message ?? "It is not valid").replace(/^Invalid input: /, "");
  return new TransferError("invalid_param", `${param}: ${reason.replace(/\.?$/, ".")}`, { param });
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, part) =>
      typeof inner === "object" && inner !== null ? (inner as Record<PropertyKey, unknown>)[part] : undefined,
    value,
  );
}
