/**
 * The HTTP listener: Node's own server, set up for bodies that take hours, before an application that speaks `fetch`.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { getRequestListener, type HttpBindings, RequestError } from "@hono/node-server";
import { asTransferError, TransferError } from "../errors.ts";
import type { Log } from "../log.ts";
import { holdContinue } from "../tus/expect-continue.ts";
import { answerClientError } from "./client-error.ts";
import { ListenError } from "./listen-error.ts";
import { problemResponse } from "./problem-response.ts";

/** tus clients send the URLs of all partial uploads in one header field; 16 KiB (the default) holds about 150. */
const maxHeaderBytes = 32 * 1024;
/** From the first byte of a request to the end of its header fields. */
const headersTimeoutMs = 30_000;
/** Above the 60 s after which usual load balancers drop an idle connection: the one who reuses it must not lose the race. */
const keepAliveTimeoutMs = 65_000;

export type Application = (request: Request, bindings: HttpBindings) => Response | Promise<Response>;

export interface Listening {
  readonly port: number;
  /**
   * Accepts nothing more and waits for the requests that run; after `graceMs` it cuts what is left.
   * False where something had to be cut.
   */
  stop(graceMs: number): Promise<boolean>;
}

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  readonly log: Log;
  /** Called once, as soon as the port is known and before the first request is taken. */
  readonly application: (port: number) => Application;
}

/** @throws ListenError */
export async function listen(options: ListenOptions): Promise<Listening> {
  const server = createServer({
    // Node cuts a body after 300 s by default. The doors have an idle timer of their own.
    requestTimeout: 0,
    headersTimeout: headersTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    maxHeaderSize: maxHeaderBytes,
    // Node would answer with a bare status line; the application's adapter refuses such a request as well, and says why.
    requireHostHeader: false,
  });
  await bind(server, options.host, options.port);
  const { port } = server.address() as AddressInfo;
  const application = options.application(port);
  const handle = getRequestListener((request, bindings) => application(request, bindings as HttpBindings), {
    errorHandler: (thrown) => answerFault(thrown, options.log),
  });
  const underWay = new WeakMap<Duplex, ServerResponse>();
  server.on("request", (incoming: IncomingMessage, outgoing: ServerResponse) => {
    underWay.set(incoming.socket, outgoing);
    void handle(incoming, outgoing);
  });
  // Uploads are asked for their bytes when the engine wants them; whatever else waits to be asked is asked at once.
  holdContinue(server, (url) => /^\/files(?:[/?]|$)/.test(url));
  server.on("clientError", (error, socket) => answerClientError(error, socket, underWay.get(socket)));
  return { port, stop: (graceMs) => stop(server, graceMs) };
}

function bind(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const refuse = (error: NodeJS.ErrnoException): void => reject(new ListenError(whyNot(error, host, port)));
    server.once("error", refuse);
    server.listen({ host, port }, () => {
      server.off("error", refuse);
      resolve();
    });
  });
}

function whyNot(error: NodeJS.ErrnoException, host: string, port: number): string {
  switch (error.code) {
    case "EADDRINUSE":
      return (
        `Port ${port} on ${host} is in use, perhaps by another Longshore. ` +
        "Stop that program, choose another port with --port or LONGSHORE_PORT, or take any free one with --port 0."
      );
    case "EACCES":
      return `Port ${port} on ${host} is not allowed to this user. Choose one above 1023 with --port or LONGSHORE_PORT.`;
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `This machine has no address ${host}. Correct --host or LONGSHORE_HOST.`;
    default:
      return `Cannot listen on ${host} port ${port}: ${error.message}.`;
  }
}

/** For what never reached the application, or fell out of it. */
function answerFault(thrown: unknown, log: Log): Response {
  if (thrown instanceof RequestError)
    return problemResponse(
      new TransferError("invalid_param", "The request line or the Host header field is not valid."),
    );
  log({ level: "error", event: "server.fault", error: thrown });
  return problemResponse(asTransferError(thrown));
}

function stop(server: Server, graceMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    let cut = false;
    // A connection that has just answered its last request is idle only from then on, and would be kept for the next one.
    const idle = setInterval(() => server.closeIdleConnections(), 50);
    const deadline = setTimeout(() => {
      cut = true;
      server.closeAllConnections();
    }, graceMs);
    server.close(() => {
      clearInterval(idle);
      clearTimeout(deadline);
      resolve(!cut);
    });
  });
}
