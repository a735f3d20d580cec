/**
 * The body of a request on its way to the engine, and what becomes of one that nobody wants.
 *
 * Promises: with Node at hand the engine reads the raw message, and nothing here is done per piece; a sender that is silent for
 * longer than the idle time is cut off, so that the engine commits what it has; Node's own `requestTimeout`, which would cut a
 * long upload that is going well, does not apply while one runs.
 */
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import type { ReadableStream as NodeReadableStream } from "node:stream/web";
import { TransferError } from "../errors.ts";
import type { Body } from "../transfer/engine.ts";
import type { Exchange } from "./exchange.ts";
import { continueHeld, isHeld } from "./expect-continue.ts";
import { liftRequestTimeout } from "./request-timeout.ts";

/** A body with at most this much to come is read to its end after an early answer, and the connection goes on. */
const drainBytes = 256 << 10;
/** After an early answer to a larger one: how long the connection stays open, and how much of it is taken off the wire. */
const lingerMs = 3_000;
/** The same where the client still waits to be asked for the body, and most likely sends none. */
const heldLingerMs = 300;
const lingerBytes = 64 << 20;

/** What the header says of the body's length (RFC 9112 section 6.3). */
export type BodyLength =
  | { readonly kind: "none" }
  | { readonly kind: "known"; readonly bytes: number }
  | { readonly kind: "chunked" };

/** Throws `file_too_large` for a length that no file can have, `invalid_param` for a coding that would be stored as it came. */
export function bodyLengthOf(exchange: Exchange): BodyLength {
  const coding = exchange.header("transfer-encoding");
  if (coding !== null) {
    if (coding.trim().toLowerCase() === "chunked") return { kind: "chunked" };
    throw new TransferError("invalid_param", "The only transfer coding that is understood is chunked.", {
      param: "Transfer-Encoding",
      recoveryHint: "Send the bytes as they are, with Content-Length or with 'Transfer-Encoding: chunked'.",
    });
  }
  const length = exchange.header("content-length");
  if (length !== null) {
    const bytes = Number(length);
    if (!Number.isSafeInteger(bytes)) {
      throw new TransferError("file_too_large", "Content-Length is more than any file may have.");
    }
    return { kind: "known", bytes };
  }
  // HTTP/2 and bare fetch calls may bring a body without saying how long it is.
  if (exchange.node !== null)
    return hasUntoldBody(exchange.node.incoming) ? { kind: "chunked" } : { kind: "none" };
  return exchange.request.body === null ? { kind: "none" } : { kind: "chunked" };
}

/** HTTP/2 frames bodies by itself (RFC 9113 section 8.1): there is none where the header ends the stream. */
function hasUntoldBody(incoming: IncomingMessage): boolean {
  if (incoming.httpVersionMajor < 2) return false;
  // Node's compatibility layer hands out its own request class, which has the stream.
  const { stream } = incoming as { stream?: { endAfterHeaders?: boolean } };
  return stream?.endAfterHeaders !== true;
}

/**
 * Whether nobody has asked the request for its `body` yet, which starts reading from the raw message. Only the adapter's own request
 * tells; where it does not, the web stream is read.
 */
function isUntouched(request: Request): boolean {
  const own = Object.getOwnPropertySymbols(request).map(({ description }) => description);
  return own.includes("incomingKey") && !own.includes("requestCache");
}

function streamOf({ node, request }: Exchange): Readable {
  if (node !== null && isUntouched(request)) return node.incoming;
  if (request.bodyUsed || request.body?.locked === true) throw readBefore();
  const { body } = request;
  // The types of the global stream and of node:stream/web differ in name only.
  return body === null ? Readable.from([]) : Readable.fromWeb(body as NodeReadableStream<Uint8Array>);
}

/**
 * Calls `use` with the body and looks after it meanwhile. `accepted` is for the engine's `onAccepted`: it asks the client for the
 * bytes where it waits to be asked (`Expect: 100-continue`).
 */
export async function withBody<T>(
  exchange: Exchange,
  options: { readonly idleTimeoutMs: number; readonly lengthBytes: number | null },
  use: (body: Body, accepted: () => void) => Promise<T>,
): Promise<T> {
  const { node } = exchange;
  const stream = streamOf(exchange);
  const isRaw = stream === node?.incoming;
  // Raw pieces nobody else has: who listened to them before has begun the reading, which is refused below.
  const body = { stream, lengthBytes: options.lengthBytes, disposable: isRaw };
  if (node === null) return use(body, () => {});
  const stopWatching = watchSilence(node.incoming, options.idleTimeoutMs);
  const restoreTimeout = liftRequestTimeout(node.incoming);
  try {
    return await use(body, () => {
      const { readableFlowing, readableDidRead } = node.incoming;
      if (isRaw && (readableFlowing === true || readableDidRead)) throw readBefore();
      continueHeld(node);
    });
  } finally {
    stopWatching();
    restoreTimeout();
  }
}

/** What is left of a body that somebody else has read from would be stored in the wrong place. */
function readBefore(): Error {
  return new Error("The body of the request was read before it came here, by a middleware most likely.");
}

/**
 * Destroys the message when no byte has come for `idleTimeoutMs`. It counts bytes on the socket from time to time instead of
 * listening to the pieces, and does not blame the sender while pieces wait here for the disk.
 */
function watchSilence(incoming: IncomingMessage, idleTimeoutMs: number): () => void {
  let seenBytes = incoming.socket.bytesRead;
  let seenAt = performance.now();
  const timer = setInterval(
    () => {
      const bytes = incoming.socket.bytesRead;
      const now = performance.now();
      if (bytes !== seenBytes || incoming.readableLength > 0 || incoming.complete) {
        seenBytes = bytes;
        seenAt = now;
      } else if (now - seenAt >= idleTimeoutMs) {
        clearInterval(timer);
        incoming.destroy(new Error(`No byte of the body came for ${idleTimeoutMs} ms.`));
      }
    },
    Math.max(10, Math.min(1_000, idleTimeoutMs / 4)),
  );
  timer.unref();
  return () => clearInterval(timer);
}

/**
 * What is to be done about the rest of a body when the answer is ready. `keep`: nothing, or little enough to read it and go on
 * with the connection. `close`: the connection ends after the answer.
 */
export function restOfBody(exchange: Exchange): "keep" | "close" {
  if (exchange.node === null) return "keep";
  const { incoming } = exchange.node;
  if (incoming.complete || incoming.destroyed) return "keep";
  // A client that still waits to be asked for its body may send it or not: only the end of the connection is clear to both.
  if (isHeld(incoming)) return "close";
  const length = incoming.headers["content-length"];
  if (length !== undefined) return Number(length) <= drainBytes ? "keep" : "close";
  return incoming.headers["transfer-encoding"] === undefined ? "keep" : "close";
}

/**
 * Takes the rest of a body off the wire and drops it, for a short while only: so a client that reads the answer after sending
 * gets to see it, instead of a reset (RFC 9112 section 9.6). Resolves when the body or the connection ends, or when it has been
 * long enough; never rejects.
 */
export function discardRest(incoming: IncomingMessage): Promise<void> {
  if (incoming.complete || incoming.destroyed) {
    incoming.resume();
    return Promise.resolve();
  }
  return new Promise((resolve) => {
    let left = lingerBytes;
    const finish = () => {
      clearTimeout(timer);
      incoming.off("data", onData).off("end", finish).off("close", finish);
      resolve();
    };
    const onData = (piece: Uint8Array) => {
      left -= piece.byteLength;
      // Enough swallowed: from now on the sender feels that nobody reads.
      if (left <= 0) incoming.pause();
    };
    const timer = setTimeout(finish, isHeld(incoming) ? heldLingerMs : lingerMs);
    incoming.on("error", () => {});
    incoming.on("data", onData).on("end", finish).on("close", finish);
    incoming.resume();
  });
}
