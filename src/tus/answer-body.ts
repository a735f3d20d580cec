/**
 * The bytes of a long answer on their way from a file to a reader, as a web stream that any middleware may read, wrap or copy. The pieces
 * are large, so that the web stream costs next to nothing.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex, Readable } from "node:stream";

/** A reader that takes nothing for this long is cut off: it holds a file and a piece of memory. */
const stalledReaderMs = 10 * 60_000;

/** @param onFault is told what broke the body off, unless it was the reader leaving. */
export function answerBody(
  outgoing: ServerResponse | null,
  content: Readable,
  onFault: (fault: unknown) => void,
): ReadableStream<Uint8Array> {
  // One that nobody reads to its end (the reader left, a middleware answers something else) must not keep its file open.
  if (outgoing !== null) whenClosed(outgoing, () => content.destroy());
  const pieces: AsyncIterator<Uint8Array> = content[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const next = await pieces.next();
          if (next.done === true) controller.close();
          else controller.enqueue(next.value);
        } catch (fault) {
          if (outgoing === null) onFault(fault);
          else if (!outgoing.closed) {
            onFault(fault);
            // Too late for a status: a cut connection is how the reader learns that the body is not whole. The adapter lets go of
            // this stream then, and has nothing to say about the fault; what still reads it gets to know.
            outgoing.destroy();
            await new Promise<void>((resolve) => whenClosed(outgoing, resolve));
          }
          throw fault;
        }
      },
      cancel() {
        content.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Answers that stand behind others of their connection, by socket. */
const standing = new WeakMap<Duplex, Set<() => void>>();

/**
 * Waits until the answers before this one are on their way (RFC 9112 section 9.3.2); false where the connection is gone. A client may ask for
 * hundreds of long answers in one breath and take none; only the one whose turn it is may hold bytes.
 */
export function itsTurn({
  incoming,
  outgoing,
}: {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}): Promise<boolean> {
  const { socket } = incoming;
  // Node gives an answer the socket when the one before has ended.
  if (outgoing.socket !== null) return Promise.resolve(true);
  if (socket.destroyed) return Promise.resolve(false);
  let others = standing.get(socket);
  if (others === undefined) {
    const all = new Set<() => void>();
    others = all;
    standing.set(socket, all);
    // One listener for all: hundreds of them would be taken for a leak.
    socket.once("close", () => {
      for (const go of all) go();
    });
  }
  const all = others;
  return new Promise((resolve) => {
    const go = () => {
      all.delete(go);
      resolve(!socket.destroyed);
    };
    all.add(go);
    outgoing.once("socket", go);
  });
}

/** Cuts the connection of a reader that takes nothing of this answer for a long time. */
export function cutStalled(outgoing: ServerResponse): void {
  let seenBytes = -1;
  let seenAt = performance.now();
  const timer = setInterval(() => {
    // Without a socket it is not its turn yet: the reader has others to take before.
    const bytes = outgoing.socket?.bytesWritten;
    if (bytes === undefined || bytes !== seenBytes) {
      seenBytes = bytes ?? seenBytes;
      seenAt = performance.now();
    } else if (performance.now() - seenAt >= stalledReaderMs) outgoing.destroy();
  }, 15_000);
  timer.unref();
  whenClosed(outgoing, () => clearInterval(timer));
}

function whenClosed(outgoing: ServerResponse, then: () => void): void {
  if (outgoing.closed) then();
  else outgoing.once("close", then);
}
