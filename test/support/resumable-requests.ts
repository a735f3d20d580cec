/** Requests of a client of Resumable Uploads for HTTP, for tests that look at single answers. */
import { createHash } from "node:crypto";
import type { RequestBody } from "./tus-requests.ts";

type Fields = Record<string, string>;

export const partialMedia = "application/partial-upload";

/** Value of `Repr-Digest` and `Content-Digest`. */
export const sha256Field = (bytes: Uint8Array | string): string =>
  `sha-256=:${createHash("sha256").update(bytes).digest("base64")}:`;

const send = (url: string, method: string, headers: Fields, body?: RequestBody): Promise<Response> =>
  fetch(url, {
    method,
    headers,
    ...(body !== undefined && { body }),
    // Only for bodies that are streams, which go out in chunks.
    ...(body instanceof ReadableStream && { duplex: "half" }),
  } as RequestInit);

/** Upload creation. */
export const begin = (
  base: string,
  complete: boolean,
  fields: Fields,
  body?: RequestBody,
): Promise<Response> =>
  send(`${base}/files`, "POST", { "Upload-Complete": complete ? "?1" : "?0", ...fields }, body);

/** Upload append. */
export const append = (
  url: string,
  offset: number | string,
  complete: boolean,
  body?: RequestBody,
  fields: Fields = {},
): Promise<Response> =>
  send(
    url,
    "PATCH",
    {
      "Upload-Complete": complete ? "?1" : "?0",
      "Upload-Offset": String(offset),
      "Content-Type": partialMedia,
      ...fields,
    },
    body,
  );

/** URL of a new upload without bytes. */
export async function begun(base: string, fields: Fields = {}): Promise<string> {
  const response = await begin(base, false, fields);
  const location = response.headers.get("location");
  if (response.status !== 201 || location === null) throw new Error(`not created: ${response.status}`);
  return location;
}

export const look = (url: string, method: "HEAD" | "GET" = "HEAD"): Promise<Response> =>
  send(url, method, {});
