/**
 * The whole HTTP surface of a server in one Hono app: what is asked first, and what is mounted where.
 *
 * Promises: every route checks Host before anything else; creating also checks Origin; whatever is thrown becomes problem+json with
 * the request's id, and its cause goes to the log under that id.
 */
import { type Context, Hono } from "hono";
import { asTransferError, TransferError } from "../errors.ts";
import { landingPage, landingPageCsp } from "../web/landing-page.ts";
import { accessLog } from "./access-log.ts";
import { createCors } from "./create-cors.ts";
import type { ForwardedLinks } from "./forwarded.ts";
import { hostGuard, originGuard } from "./guards.ts";
import type { Logger } from "./log.ts";
import { problemResponse } from "./problem-response.ts";
import type { Readiness } from "./readiness.ts";
import { requestIdOf } from "./request-id.ts";

export interface AppParts {
  readonly version: string;
  /** Fixed base URL: what Host is checked against. */
  readonly publicUrl: string;
  readonly links: ForwardedLinks["links"];
  /** Follows a trusted proxy; null where none is. */
  readonly followProxy: ForwardedLinks["middleware"] | null;
  readonly allowedOrigins: readonly string[];
  /** `/files` and `/d`. */
  readonly files: Hono;
  readonly mcp: { fetch(request: Request): Promise<Response> };
  readonly readiness: Readiness;
  readonly logger: Logger;
}

export function createApp(parts: AppParts): Hono {
  const { logger, links } = parts;
  const neighbourhood = { publicUrl: () => links.publicUrl, allowedOrigins: parts.allowedOrigins };
  const app = new Hono();

  app.onError((thrown, c) => answerError(thrown, c, logger));
  app.notFound((c) => problemResponse(nothingHere(c.req.path), requestIdOf(c.req.raw)));

  app.use(accessLog(logger));
  if (parts.followProxy !== null) app.use(parts.followProxy);
  // Before the guards: it has the same ones, and answers in JSON-RPC.
  app.all("/mcp", (c) => parts.mcp.fetch(c.req.raw));
  app.use(hostGuard(parts.publicUrl));
  for (const path of ["/files", "/files/"]) {
    app.use(path, createCors(neighbourhood));
    app.use(path, originGuard(neighbourhood));
  }

  app.route("/", parts.files);

  app.get("/healthz", (c) => c.json({ status: "ok" }, 200, { "Cache-Control": "no-store" }));
  app.get("/readyz", async (c) => {
    await parts.readiness();
    return c.json({ status: "ready" }, 200, { "Cache-Control": "no-store" });
  });
  app.get("/", async (c) => {
    const health = await parts.readiness().then(
      () => "ready",
      (thrown: unknown) => asTransferError(thrown).message,
    );
    return c.html(landingPage({ version: parts.version, publicUrl: links.publicUrl, health }), 200, {
      "Content-Security-Policy": landingPageCsp,
      "X-Content-Type-Options": "nosniff",
      "Referrer-Policy": "no-referrer",
      "Cache-Control": "no-store",
    });
  });
  for (const path of ["/", "/healthz", "/readyz"]) app.all(path, refuseMethod);
  return app;
}

function refuseMethod(c: Context): never {
  throw new TransferError("method_not_allowed", `${c.req.method} has no meaning for this URL.`, {
    allow: ["GET", "HEAD"],
  });
}

function nothingHere(path: string): TransferError {
  return new TransferError("unknown_handle", `There is nothing at ${JSON.stringify(path)}.`, {
    recoveryHint:
      "Uploads are created with POST /files, MCP clients connect to /mcp; other URLs are handed out whole.",
  });
}

function answerError(thrown: unknown, c: Context, logger: Logger): Response {
  const requestId = requestIdOf(c.req.raw);
  const error = asTransferError(thrown);
  if (error.status >= 500)
    logger.log({
      level: error.code === "internal_error" ? "error" : "warn",
      event: "request_failed",
      requestId,
      code: error.code,
      error: error.options.cause ?? error,
    });
  return problemResponse(error, requestId);
}
