/**
 * `Expect: 100-continue` (RFC 9110 section 10.1.1): the client sends its body only when asked, so a refusal costs it nothing.
 *
 * Node asks at once by itself unless its server has a `checkContinue` listener. `holdContinue` installs one that lets requests for
 * uploads through unasked; the doors ask when the engine wants the bytes.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";

const held = new WeakSet<IncomingMessage>();

/** Holds back the question for requests that `isUpload` picks by their raw URL; all others are asked at once, as Node does. */
export function holdContinue(server: Server, isUpload: (url: string) => boolean): void {
  server.on("checkContinue", (incoming: IncomingMessage, outgoing: ServerResponse) => {
    if (isUpload(incoming.url ?? "")) held.add(incoming);
    else outgoing.writeContinue();
    server.emit("request", incoming, outgoing);
  });
}

/** True while the client still waits to be asked. */
export function isHeld(incoming: IncomingMessage): boolean {
  return held.has(incoming);
}

/** Asks for the body where that has been held back; at any other time it does nothing. */
export function continueHeld(node: { incoming: IncomingMessage; outgoing: ServerResponse }): void {
  if (!held.delete(node.incoming)) return;
  if (!node.outgoing.headersSent && !node.outgoing.destroyed) node.outgoing.writeContinue();
}
