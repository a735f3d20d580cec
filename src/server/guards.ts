/**
 * Who may talk to the server at all. A page on the web can point its own name at 127.0.0.1 and then reach this server with the
 * browser of a person who sits here; the name it uses stands in Host, and where it comes from in Origin.
 */
import type { MiddlewareHandler } from "hono";
import { TransferError } from "../errors.ts";
import { isLoopbackHost } from "./loopback.ts";

export interface Neighbourhood {
  /** Base of the URLs handed out at this moment. */
  readonly publicUrl: () => string;
  readonly allowedOrigins: readonly string[];
}

/** The name in a Host header, without port; null where it is none. */
export function hostnameOf(hostHeader: string | undefined): string | null {
  const match = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/i.exec(hostHeader ?? "");
  return match?.[1]?.toLowerCase().replace(/\.$/, "") ?? null;
}

/** Loopback names, and that of the fixed public URL: never one that a request header brought. */
export function isAllowedHost(hostHeader: string | undefined, publicUrl: string): boolean {
  const hostname = hostnameOf(hostHeader);
  return hostname !== null && (isLoopbackHost(hostname) || hostname === new URL(publicUrl).hostname);
}

/** No Origin (not a browser, or its own page), loopback, this server's own, or one the operator allows. */
export function isAllowedOrigin(origin: string | undefined, neighbourhood: Neighbourhood): boolean {
  if (origin === undefined) return true;
  if (!URL.canParse(origin)) return false;
  const url = new URL(origin);
  const isWeb = url.protocol === "http:" || url.protocol === "https:";
  return (
    (isWeb && isLoopbackHost(url.hostname)) ||
    url.origin === new URL(neighbourhood.publicUrl()).origin ||
    neighbourhood.allowedOrigins.includes(url.origin)
  );
}

/** For every route. */
export function hostGuard(publicUrl: string): MiddlewareHandler {
  return async function checkHost(c, next) {
    const host = c.req.header("host");
    if (!isAllowedHost(host, publicUrl))
      throw new TransferError(
        "forbidden",
        `This server does not answer to the host ${JSON.stringify(host ?? "")}.`,
        {
          recoveryHint: `Use ${publicUrl}, or ask the operator to set LONGSHORE_PUBLIC_URL to the URL that you use.`,
        },
      );
    await next();
  };
}

/** For what creates: a foreign page must not fill this server with the browser of somebody who can reach it. */
export function originGuard(neighbourhood: Neighbourhood): MiddlewareHandler {
  return async function checkOrigin(c, next) {
    const origin = c.req.header("origin");
    if (!isAllowedOrigin(origin, neighbourhood))
      throw new TransferError(
        "forbidden",
        `Pages of ${JSON.stringify(origin)} may not create uploads here.`,
        {
          recoveryHint: "Ask the operator to add the origin to LONGSHORE_ALLOWED_ORIGINS.",
        },
      );
    await next();
  };
}
