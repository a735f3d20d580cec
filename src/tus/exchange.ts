/**
 * One HTTP request as the doors see it, whether it came through a Node server or through a bare `fetch` call, and the answer
 * that a door gives: plain data, rendered in one place (`render.ts`).
 */
import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { Context } from "hono";

/** The raw pair of @hono/node-server. With it the bytes of a request never pass through web streams, which cost several times as much. */
interface NodeExchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

export interface Exchange {
  readonly request: Request;
  /** The effective method: `X-HTTP-Method-Override` has been looked at. */
  readonly method: string;
  /** The secret of a ticket URL; null on `/files` itself. */
  readonly ticket: string | null;
  readonly node: NodeExchange | null;
  readonly requestId: string;
  /** Value of a request header field as it came, without the white space around it; null where there is none. */
  header(name: string): string | null;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** A short text, complete. */
  readonly body?: string;
  /** A long body, opened only when it is really sent; its length is in `Content-Length`. */
  readonly content?: () => Readable;
  /** The same for one that is short enough to be held in memory whole. */
  readonly bytes?: () => Promise<Uint8Array>;
}

/** The raw pair where the request came through a Node server; null through `app.request()` or on another runtime. */
function nodeExchangeOf(env: unknown): NodeExchange | null {
  if (typeof env !== "object" || env === null) return null;
  const { incoming, outgoing } = env as Partial<NodeExchange>;
  return incoming !== undefined && outgoing !== undefined ? { incoming, outgoing } : null;
}

/** `X-Request-ID` of the caller where it is harmless in a log and a header, else a fresh one. */
export function requestIdFor(request: Request): string {
  const given = request.headers.get("x-request-id");
  return given !== null && /^[A-Za-z0-9._~:=+/-]{1,128}$/.test(given) ? given : randomUUID();
}

export function exchangeOf(
  c: Context,
  given: { method: string; ticket: string | null; requestId: string },
): Exchange {
  const { raw } = c.req;
  return { ...given, request: raw, node: nodeExchangeOf(c.env), header: (name) => raw.headers.get(name) };
}
