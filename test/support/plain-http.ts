/**
 * Requests with nothing between test and socket: one connection each, no pool, no retry, a body that can be held back. For tests
 * in which servers die and connections hang.
 */
import {
  type Agent,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
} from "node:http";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export type HttpBody = string | Uint8Array | Readable;

export interface HttpOptions {
  readonly headers?: Record<string, string>;
  readonly body?: HttpBody;
  /** Gives up after this long without an answer; default 30 s. */
  readonly withinMs?: number;
  /** Default: a connection of its own. */
  readonly agent?: Agent;
}

/** A request whose body is fed by hand. */
export interface OpenRequest {
  readonly request: ClientRequest;
  /** Rejects where the connection ends without an answer. Never an unhandled rejection. */
  readonly answer: Promise<HttpAnswer>;
  /** Resolves when the socket has taken the bytes. */
  write(bytes: Uint8Array): Promise<void>;
  end(): void;
  /** Cuts the connection. */
  destroy(): void;
}

export function open(
  method: string,
  url: string,
  headers: Record<string, string> = {},
  withinMs = 30_000,
  agent: Agent | false = false,
): OpenRequest {
  const outgoing = request(url, { method, headers, agent });
  const answer = new Promise<HttpAnswer>((resolve, reject) => {
    const timer = setTimeout(() => {
      outgoing.destroy();
      reject(new Error(`${method} ${url}: no answer within ${withinMs} ms`));
    }, withinMs);
    outgoing.on("error", reject);
    outgoing.on("response", (incoming) => {
      collect(incoming)
        .then(resolve, reject)
        .finally(() => clearTimeout(timer));
    });
    outgoing.on("close", () => clearTimeout(timer));
  });
  answer.catch(() => {});
  return {
    request: outgoing,
    answer,
    write: (bytes) =>
      new Promise((resolve, reject) => {
        outgoing.write(bytes, (error) => (error == null ? resolve() : reject(error)));
      }),
    end: () => void outgoing.end(),
    destroy: () => void outgoing.destroy(),
  };
}

async function collect(incoming: IncomingMessage): Promise<HttpAnswer> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece);
  return { status: incoming.statusCode ?? 0, headers: incoming.headers, body: Buffer.concat(pieces) };
}

export async function http(method: string, url: string, options: HttpOptions = {}): Promise<HttpAnswer> {
  const { body } = options;
  const outgoing = open(
    method,
    url,
    {
      ...(body !== undefined &&
        (typeof body === "string" || body instanceof Uint8Array) && {
          "Content-Length": String(Buffer.byteLength(body)),
        }),
      ...options.headers,
    },
    options.withinMs,
    options.agent,
  );
  if (body === undefined) outgoing.end();
  else if (typeof body === "string" || body instanceof Uint8Array) outgoing.request.end(body);
  // An answer that comes before all is sent ends the sending; it is the answer that counts.
  else pipeline(body, outgoing.request).catch(() => {});
  return outgoing.answer;
}

/** The answer, or null where the connection ended without one: a server that was killed, say. */
export function answerOrNone(answer: Promise<HttpAnswer>): Promise<HttpAnswer | null> {
  return answer.catch(() => null);
}

export function problem(answer: HttpAnswer): { code: string; retryable: boolean; detail: string } {
  return JSON.parse(answer.body.toString("utf8")) as { code: string; retryable: boolean; detail: string };
}

const tus = { "Tus-Resumable": "1.0.0" } as const;

export function tusCreate(
  base: string,
  sizeBytes: number | null,
  headers: Record<string, string> = {},
  body?: HttpBody,
): Promise<HttpAnswer> {
  const length: Record<string, string> =
    sizeBytes === null ? { "Upload-Defer-Length": "1" } : { "Upload-Length": String(sizeBytes) };
  return http("POST", `${base}/files`, {
    headers: {
      ...tus,
      ...length,
      ...(body !== undefined && { "Content-Type": "application/offset+octet-stream" }),
      ...headers,
    },
    ...(body !== undefined && { body }),
  });
}

/** URL of a new upload; fails where it is not created. */
export async function tusCreated(
  base: string,
  sizeBytes: number | null,
  headers: Record<string, string> = {},
): Promise<string> {
  const answer = await tusCreate(base, sizeBytes, headers);
  if (answer.status !== 201 || answer.headers.location === undefined)
    throw new Error(`not created: ${answer.status} ${answer.body}`);
  return answer.headers.location;
}

export function patchHeaders(offset: number, lengthBytes?: number): Record<string, string> {
  return {
    ...tus,
    "Upload-Offset": String(offset),
    "Content-Type": "application/offset+octet-stream",
    ...(lengthBytes !== undefined && { "Content-Length": String(lengthBytes) }),
  };
}

export function tusPatch(
  url: string,
  offset: number,
  body: HttpBody,
  headers: Record<string, string> = {},
): Promise<HttpAnswer> {
  return http("PATCH", url, { headers: { ...patchHeaders(offset), ...headers }, body });
}

export function tusHead(url: string): Promise<HttpAnswer> {
  return http("HEAD", url, { headers: tus });
}

export function offsetOf(answer: HttpAnswer): number {
  const offset = answer.headers["upload-offset"];
  if (typeof offset !== "string" || !/^\d+$/.test(offset))
    throw new Error(`no Upload-Offset in ${answer.status} ${JSON.stringify(answer.headers)} ${answer.body}`);
  return Number(offset);
}
