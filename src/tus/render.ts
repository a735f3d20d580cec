/** Turns answers and errors of the doors into HTTP responses: the one place where either becomes bytes. */
import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import type { Context } from "hono";
import type { StatusCode } from "hono/utils/http-status";
import { type TransferError, toErrorHeaders, toProblem } from "../errors.ts";
import { answerBody, cutStalled, itsTurn } from "./answer-body.ts";
import type { Answer, Exchange } from "./exchange.ts";
import { discardRest, restOfBody } from "./request-body.ts";

/** Statuses that promise an end of the trouble: the caller is always told when to come back. */
const passing: ReadonlySet<number> = new Set([423, 429, 503]);
const defaultRetryAfterSeconds = 2;

export function problemAnswer(thrown: TransferError, requestId: string): Answer {
  const error = passing.has(thrown.status)
    ? thrown.with({ retryAfterSeconds: defaultRetryAfterSeconds })
    : thrown;
  return {
    status: error.status,
    headers: {
      ...toErrorHeaders(error),
      // RFC 9110 section 11.6.1 demands it. A guard that knows more (where to get a token) has its own.
      ...(error.status === 401 && { "WWW-Authenticate": "Bearer" }),
      "Content-Type": "application/problem+json",
      // What is refused now may be granted in a minute.
      "Cache-Control": "no-store",
    },
    body: JSON.stringify(toProblem(error, requestId)),
  };
}

/** @param onFault is told what broke a long body off after its answer had begun. */
export async function render(
  c: Context,
  exchange: Exchange,
  answer: Answer,
  onFault: (fault: unknown) => void,
): Promise<Response> {
  const { node, request } = exchange;
  const { status, content, bytes, body } = answer;
  const closes = node?.incoming.httpVersionMajor === 1 && restOfBody(exchange) === "close";
  const headers: Record<string, string> = { ...answer.headers, ...(closes && { Connection: "close" }) };
  const respond = (payload: Payload): Response => responseOf(c, payload, status, headers);
  if (request.method === "HEAD") return respond(null);
  if (bytes !== undefined || content !== undefined) {
    if (node !== null) {
      if (!(await itsTurn(node))) return respond(null);
      cutStalled(node.outgoing);
    }
    if (bytes !== undefined) return respond(await bytes());
  }
  if (content !== undefined) {
    const stream = content();
    await firstPiece(stream);
    return respond(answerBody(node?.outgoing ?? null, stream, onFault));
  }
  if (node !== null && closes && body !== undefined) {
    headers["Content-Length"] = String(Buffer.byteLength(body));
    return respond(lingering(node.incoming, body));
  }
  if (node !== null) void finishReading(node.incoming);
  // Said outright, or Node frames nothing as a body in chunks.
  if (body === undefined && status !== 204 && status !== 304) headers["Content-Length"] = "0";
  return respond(body ?? null);
}

type Payload = string | Uint8Array | ReadableStream<Uint8Array> | null;

/**
 * Header fields that middleware in front has set on the context go along. Where there are none, a record of fields is passed on as
 * it is: making a `Headers` of it, and a record of that again, costs more than all else here.
 */
function responseOf(c: Context, payload: Payload, status: number, headers: Record<string, string>): Response {
  // The web types know of no bytes that are shared between threads, and these are not.
  const body = payload as string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null;
  const before = c.newResponse(null).headers;
  return before.keys().next().done === true
    ? new Response(body, { status, headers })
    : c.newResponse(body, status as StatusCode, headers);
}

/**
 * An answer given while the client still sends: it is complete at once for a reader, but the response ends (and Node closes the
 * connection) only after the rest has been taken off the wire for a while.
 */
function lingering(incoming: IncomingMessage, text: string): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    async start(controller) {
      controller.enqueue(Buffer.from(text));
      await discardRest(incoming);
      controller.close();
    },
  });
}

/** The little that is left of a body is read away behind the answer; a sender that dawdles over it loses the connection. */
async function finishReading(incoming: IncomingMessage): Promise<void> {
  await discardRest(incoming);
  if (!incoming.complete) incoming.destroy();
}

/** Resolves when the first bytes (or the end) are there, rejects with the stream's error: so a fault can still become an answer. */
function firstPiece(content: Readable): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (then: () => void) => {
      content.off("readable", onReadable).off("error", onError);
      then();
    };
    const onReadable = () => settle(resolve);
    const onError = (error: Error) => settle(() => reject(error));
    content.on("readable", onReadable).on("error", onError);
  });
}
