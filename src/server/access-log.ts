/** One line for each request, at debug. */
import type { MiddlewareHandler } from "hono";
import type { Logger } from "./log.ts";
import { redactPath } from "./redact.ts";
import { requestIdOf } from "./request-id.ts";

/** Where nobody reads the lines, it costs a request nothing but this call. */
export function accessLog(logger: Logger): MiddlewareHandler {
  if (!logger.writes("debug")) return async (_c, next) => next();
  return async function logAccess(c, next) {
    const startedAt = performance.now();
    await next();
    logger.log({
      level: "debug",
      event: "request",
      requestId: requestIdOf(c.req.raw),
      method: c.req.method,
      path: redactPath(c.req.path),
      status: c.res.status,
      ms: Math.round(performance.now() - startedAt),
    });
  };
}
