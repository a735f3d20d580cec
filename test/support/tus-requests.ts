/** Requests of a tus client, for tests that look at single answers. */
import { createHash } from "node:crypto";

export const tusHeaders = { "Tus-Resumable": "1.0.0" } as const;
export const offsetMedia = "application/offset+octet-stream";

type Fields = Record<string, string>;
export type RequestBody = string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;

export const base64 = (text: string): string => Buffer.from(text).toString("base64");
export const sha256 = (bytes: Uint8Array | string): string =>
  createHash("sha256").update(bytes).digest("hex");

/** Bytes that differ everywhere, and are the same for the same size and seed. */
export function someBytes(size: number, seed = 1): Buffer<ArrayBuffer> {
  const bytes = Buffer.alloc(size);
  let state = seed * 2654435761 + 1;
  for (let at = 0; at < size; at += 4) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    for (let byte = 0; byte < 4 && at + byte < size; byte += 1)
      bytes[at + byte] = (state >>> (8 * byte)) & 255;
  }
  return bytes;
}

export function post(base: string, fields: Fields, body?: RequestBody): Promise<Response> {
  return fetch(`${base}/files`, {
    method: "POST",
    headers: { ...tusHeaders, ...fields },
    ...(body !== undefined && { body }),
  });
}

/** URL of a new upload. */
export async function created(base: string, fields: Fields): Promise<string> {
  const response = await post(base, fields);
  const location = response.headers.get("location");
  if (response.status !== 201 || location === null)
    throw new Error(`not created: ${response.status} ${await response.text()}`);
  return location;
}

export function patch(
  url: string,
  offset: number | string,
  body: RequestBody,
  fields: Fields = {},
): Promise<Response> {
  return fetch(url, {
    method: "PATCH",
    headers: { ...tusHeaders, "Upload-Offset": String(offset), "Content-Type": offsetMedia, ...fields },
    body,
    // Only for bodies that are streams, which go out in chunks.
    ...(body instanceof ReadableStream && { duplex: "half" }),
  } as RequestInit);
}

export function head(url: string, fields: Fields = tusHeaders): Promise<Response> {
  return fetch(url, { method: "HEAD", headers: fields });
}

/** A stored file: its handle. */
export async function stored(
  base: string,
  bytes: Uint8Array<ArrayBuffer>,
  fields: Fields = {},
): Promise<string> {
  const response = await post(
    base,
    { "Upload-Length": String(bytes.byteLength), "Content-Type": offsetMedia, ...fields },
    bytes,
  );
  const handle = response.headers.get("longshore-handle");
  if (response.status !== 201 || handle === null)
    throw new Error(`not stored: ${response.status} ${await response.text()}`);
  return handle;
}

/** Fields of a response, by lower-case name. */
export const fieldsOf = (response: Response): Record<string, string> => Object.fromEntries(response.headers);

/** Body of an error answer; fails where it is no problem document. */
export async function problemOf(response: Response): Promise<Record<string, unknown>> {
  const type = response.headers.get("content-type");
  if (type !== "application/problem+json")
    throw new Error(`${response.status} with ${type}: ${await response.text()}`);
  return (await response.json()) as Record<string, unknown>;
}

/** A body in chunks: nothing tells its length beforehand. */
export function inChunks(...pieces: (string | Uint8Array)[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(typeof piece === "string" ? Buffer.from(piece) : piece);
      controller.close();
    },
  });
}
