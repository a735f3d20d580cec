/**
 * Lets pages that the operator allows create uploads from a browser. The doors themselves share `/files` with nobody while
 * creating needs no key; pages of other origins stay out, since the answer to their preflight names no origin.
 */
import type { MiddlewareHandler } from "hono";
import { corsHeaders, preflightHeaders } from "../tus/cors.ts";
import { isAllowedOrigin, type Neighbourhood } from "./guards.ts";

export function createCors(neighbourhood: Neighbourhood): MiddlewareHandler {
  return async function shareCreation(c, next) {
    await next();
    c.res.headers.append("Vary", "Origin");
    const origin = c.req.header("origin");
    if (origin === undefined || !isAllowedOrigin(origin, neighbourhood)) return;
    const shared = {
      ...corsHeaders,
      ...(c.req.method === "OPTIONS" && preflightHeaders),
      "Access-Control-Allow-Origin": origin,
    };
    for (const [name, value] of Object.entries(shared)) c.res.headers.set(name, value);
  };
}
