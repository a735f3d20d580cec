/**
 * Sets Node's `requestTimeout` aside while uploads run. It bounds the time from a request's first byte to its last (300 s by
 * default), which cuts every upload that takes longer, however well it goes. It belongs to the server, which may be the user's own: so
 * it is lifted with the first running upload and put back after the last. `headersTimeout` stays in force throughout.
 */
import type { IncomingMessage } from "node:http";

interface TimedServer {
  requestTimeout: number;
}

const lifted = new WeakMap<TimedServer, { uploads: number; readonly requestTimeout: number }>();

/** The HTTP server a message came by. Node sets `socket.server` on accepted sockets, though its types do not say so. */
function serverOf(incoming: IncomingMessage): TimedServer | null {
  const server = (incoming.socket as { server?: unknown } | null)?.server;
  const isTimed = typeof server === "object" && server !== null && "requestTimeout" in server;
  return isTimed && typeof server.requestTimeout === "number" ? (server as TimedServer) : null;
}

/** Returns what ends the exception; call it once. */
export function liftRequestTimeout(incoming: IncomingMessage): () => void {
  const server = serverOf(incoming);
  if (server === null) return () => {};
  const entry = lifted.get(server) ?? { uploads: 0, requestTimeout: server.requestTimeout };
  lifted.set(server, entry);
  entry.uploads += 1;
  server.requestTimeout = 0;
  return () => {
    entry.uploads -= 1;
    if (entry.uploads > 0) return;
    lifted.delete(server);
    server.requestTimeout = entry.requestTimeout;
  };
}
