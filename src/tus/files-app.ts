/**
 * The HTTP doors as one Hono app: tus 1.0, Resumable Uploads for HTTP and plain PUT on `/files`, downloads on `/d`. It can stand alone or be mounted under
 * any path of another app; URLs it hands out come from `links`, never from the request.
 *
 * Promises: every answer, errors included, carries a request id and the CORS fields that its route allows; whatever is thrown
 * becomes an answer of the catalogue here, and the cause of an `internal_error` goes to the log under that id.
 */
import { type Context, Hono } from "hono";
import { asTransferError, TransferError } from "../errors.ts";
import type { Log } from "../log.ts";
import type { Transfer, TransferEngine } from "../transfer/engine.ts";
import type { Links } from "../transfer/links.ts";
import { corsHeaders, preflightHeaders } from "./cors.ts";
import { createUpload } from "./create-upload.ts";
import type { Door } from "./door.ts";
import { downloadFile } from "./download.ts";
import { type Answer, type Exchange, exchangeOf, requestIdFor } from "./exchange.ts";
import { patchUpload } from "./patch-upload.ts";
import { checkProtocol, protocolOf } from "./protocol-choice.ts";
import { putFile } from "./put-file.ts";
import { problemAnswer, render } from "./render.ts";
import { appendResumable } from "./resumable-append.ts";
import { createResumable } from "./resumable-create.ts";
import { errorHeaders, withProblemType } from "./resumable-problems.ts";
import { limitHeader } from "./resumable-protocol.ts";
import { transferHeaders } from "./transfer-headers.ts";
import { effectiveMethod, tusOptionHeaders, tusVersion } from "./tus-protocol.ts";
import { asHeadError, deleteUpload, headUpload } from "./upload-state.ts";

export interface FilesAppOptions {
  readonly engine: TransferEngine;
  readonly links: Links;
  /** Principal of a caller who creates an upload; throws TransferError `unauthorized` or `forbidden`. Must not read the body. */
  readonly authenticate: (request: Request) => Promise<string>;
  /** Whether pages of other origins may create uploads. Only sensible where creating needs a key or token. */
  readonly corsOnCreate?: boolean;
  /** Silence on a request body after which it is cut off, and what came is kept. Default 45 s. */
  readonly idleTimeoutMs?: number;
  readonly log?: Log;
  /** Default: the caller's `X-Request-ID`, else a random one. */
  readonly requestIdFor?: (request: Request) => string;
}

type Handler = (exchange: Exchange) => Promise<Answer>;

interface Route {
  readonly cors: boolean;
  /** By method, as `Allow` lists them. `OPTIONS` is added. */
  readonly handlers: ReadonlyMap<string, Handler>;
  /** The upload protocols are spoken here. */
  readonly isUpload: boolean;
}

export function createFilesApp(options: FilesAppOptions): Hono {
  const door: Door = {
    engine: options.engine,
    links: options.links,
    idleTimeoutMs: options.idleTimeoutMs ?? 45_000,
  };
  const collection: Route = {
    cors: options.corsOnCreate ?? false,
    isUpload: true,
    handlers: new Map([
      [
        "POST",
        async (exchange: Exchange) =>
          protocolOf(exchange) === "resumable"
            ? createResumable(exchange, door, await options.authenticate(exchange.request))
            : createUpload(exchange, door, await options.authenticate(exchange.request)),
      ],
    ]),
  };
  const upload: Route = {
    cors: true,
    isUpload: true,
    handlers: new Map([
      ["GET", (exchange: Exchange) => headUpload(exchange, door)],
      ["HEAD", (exchange: Exchange) => headUpload(exchange, door)],
      [
        "PATCH",
        (exchange: Exchange) =>
          protocolOf(exchange) === "resumable"
            ? appendResumable(exchange, door)
            : patchUpload(exchange, door),
      ],
      ["PUT", (exchange: Exchange) => putFile(exchange, door)],
      ["DELETE", (exchange: Exchange) => deleteUpload(exchange, door)],
    ]),
  };
  const download: Route = {
    cors: true,
    isUpload: false,
    handlers: new Map([
      ["GET", (exchange: Exchange) => downloadFile(exchange, door)],
      ["HEAD", (exchange: Exchange) => downloadFile(exchange, door)],
    ]),
  };
  const serve = (route: Route) => (c: Context) => answerRequest(c, route, options);
  return new Hono()
    .all("/files", serve(collection))
    .all("/files/", serve(collection))
    .all("/files/:ticket", serve(upload))
    .all("/files/:ticket/", serve(upload))
    .all("/files/:ticket/:name", serve(upload))
    .all("/d/:ticket", serve(download))
    .all("/d/:ticket/:filename", serve(download));
}

async function answerRequest(c: Context, route: Route, options: FilesAppOptions): Promise<Response> {
  const requestId = (options.requestIdFor ?? requestIdFor)(c.req.raw);
  const given = { method: c.req.method, ticket: c.req.param("ticket") ?? null, requestId };
  const common = {
    ...(route.isUpload &&
      protocolOf(exchangeOf(c, given)) !== "resumable" && { "Tus-Resumable": tusVersion }),
    ...(route.cors && corsHeaders),
    "X-Request-ID": requestId,
  };
  let exchange = exchangeOf(c, given);
  const finish = (answer: Answer): Promise<Response> =>
    render(c, exchange, { ...answer, headers: { ...common, ...answer.headers } }, (fault) =>
      report(asTransferError(fault), requestId, options.log),
    );
  try {
    const override = route.isUpload ? exchange.header("x-http-method-override") : null;
    exchange = exchangeOf(c, { ...given, method: effectiveMethod(given.method, override) });
    return await finish(await handle(exchange, route, options.engine));
  } catch (thrown) {
    const error = asTransferError(thrown);
    const looksAtUpload = route.isUpload && exchange.ticket !== null && exchange.method === "HEAD";
    const shown = looksAtUpload ? asHeadError(error) : error;
    if (error.status >= 500) report(error, requestId, options.log);
    return finish(await errorAnswer(shown, exchange, route, options.engine));
  }
}

async function handle(exchange: Exchange, route: Route, engine: TransferEngine): Promise<Answer> {
  if (exchange.method === "OPTIONS")
    return optionsAnswer(route, await transferAt(exchange, route, engine), engine);
  if (route.isUpload) checkProtocol(exchange, protocolOf(exchange));
  const handler = route.handlers.get(exchange.method);
  if (handler !== undefined) return handler(exchange);
  throw new TransferError("method_not_allowed", `${exchange.method} has no meaning for this URL.`, {
    allow: [...route.handlers.keys(), "OPTIONS"],
  });
}

/** The transfer that the URL is for, where there is one and it may be told; looking disturbs nobody. */
async function transferAt(
  { ticket }: Exchange,
  { isUpload }: Route,
  engine: TransferEngine,
): Promise<Transfer | null> {
  if (ticket === null) return null;
  const looking = isUpload
    ? engine.head(ticket, { disturb: false })
    : engine.openDownload(ticket).then(({ transfer }) => transfer);
  return looking.catch(() => null);
}

function optionsAnswer(route: Route, transfer: Transfer | null, engine: TransferEngine): Answer {
  return {
    status: 204,
    headers: {
      ...(transfer !== null && transferHeaders(transfer)),
      ...(route.isUpload && { ...tusOptionHeaders(engine.limits), ...limitHeader(engine.limits, null) }),
      ...(route.cors && preflightHeaders),
      Allow: [...route.handlers.keys(), "OPTIONS"].join(", "),
    },
  };
}

/** Statuses that tell nothing of a transfer. After a fault of our own another question would only meet it again. */
const tellsNothing: ReadonlySet<number> = new Set([403, 404, 410, 500]);

/** The error, with handle and status of what the URL is for, and the true offset of an upload. */
async function errorAnswer(
  error: TransferError,
  exchange: Exchange,
  route: Route,
  engine: TransferEngine,
): Promise<Answer> {
  const transfer = tellsNothing.has(error.status) ? null : await transferAt(exchange, route, engine);
  const told = transfer === null || !route.isUpload ? error : error.with({ cursor: transfer.offset });
  const protocol = route.isUpload ? protocolOf(exchange) : "tus";
  const looks = exchange.method === "HEAD" || exchange.method === "GET";
  const tellsDraft = protocol === "resumable" || (protocol === "bare" && looks);
  const answer = problemAnswer(
    protocol === "resumable" ? withProblemType(told, exchange) : told,
    exchange.requestId,
  );
  return {
    ...answer,
    headers: {
      ...answer.headers,
      ...(transfer !== null && transferHeaders(transfer)),
      ...(tellsDraft && errorHeaders(told, transfer, engine.limits)),
    },
  };
}

function report(error: TransferError, requestId: string, log: Log | undefined): void {
  log?.({
    level: error.code === "internal_error" ? "error" : "warn",
    event: "request_failed",
    requestId,
    code: error.code,
    error: error.options.cause ?? error,
  });
}
