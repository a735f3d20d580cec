/**
 * A response body that goes from a Node stream straight to the socket, though it is handed over as a web stream.
 *
 * The adapter writes the head of the response, with all that middleware has made of it, and then asks the web stream for its first
 * piece. That is the sign for the real bytes to flow past it, with the socket's own back pressure; the web stream only ends when they have.
 */
import type { ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as wait } from "node:timers/promises";

/** A reader that takes nothing for this long is cut off: it holds a file and a piece of memory. */
const stalledReaderMs = 10 * 60_000;
/** The adapter writes the head a few turns after its first question; something else that reads the body never does. */
const headWaitMs = 200;

/** @param onFault is told what broke the body off, unless it was the reader leaving. */
export function rawBody(
  outgoing: ServerResponse,
  content: Readable,
  onFault: (fault: unknown) => void,
): ReadableStream<Uint8Array> {
  let pieces: AsyncIterator<Uint8Array> | null = null;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (pieces === null && (await headIsSent(outgoing))) {
          await pump(content, outgoing, onFault);
          controller.close();
          return;
        }
        // Middleware that reads bodies stands between: it gets the bytes, and what it makes of them is its affair.
        pieces ??= content[Symbol.asyncIterator]();
        const next = await pieces.next();
        if (next.done === true) controller.close();
        else controller.enqueue(next.value);
      },
      cancel() {
        content.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}

async function headIsSent(outgoing: ServerResponse): Promise<boolean> {
  const since = performance.now();
  while (!outgoing.headersSent) {
    if (outgoing.destroyed || performance.now() - since > headWaitMs) return false;
    await wait(1);
  }
  return true;
}

async function pump(
  content: Readable,
  outgoing: ServerResponse,
  onFault: (fault: unknown) => void,
): Promise<void> {
  cutStalled(outgoing);
  try {
    await pipeline(content, outgoing, { end: false });
  } catch (error) {
    if (!isReaderGone(error)) onFault(error);
    // Too late for a status: a cut connection is how the reader learns that the body is not whole.
    outgoing.destroy();
  }
}

function isReaderGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ERR_STREAM_PREMATURE_CLOSE" || code === "ECONNRESET" || code === "EPIPE";
}

/** Cuts the connection of a reader that takes nothing of this answer for a long time. */
export function cutStalled(outgoing: ServerResponse): void {
  let seenBytes = -1;
  let seenAt = performance.now();
  const timer = setInterval(() => {
    const bytes = outgoing.socket?.bytesWritten ?? seenBytes;
    if (bytes !== seenBytes) {
      seenBytes = bytes;
      seenAt = performance.now();
    } else if (performance.now() - seenAt >= stalledReaderMs) outgoing.destroy();
  }, 15_000);
  timer.unref();
  outgoing.once("close", () => clearInterval(timer));
}
