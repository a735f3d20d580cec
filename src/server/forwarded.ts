/**
 * The base of the URLs handed out. It is fixed when the server starts, unless the operator trusts the proxy in front: then a request's
 * `X-Forwarded-Proto` and `X-Forwarded-Host` give it for that request.
 *
 * The request in hand is followed through `AsyncLocalStorage`, so that the engine and the doors need not know of it.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { MiddlewareHandler } from "hono";
import { createLinks, type Links } from "../transfer/links.ts";

/** The first of a list: each proxy adds its own at the end, the one nearest to the caller stands first. */
const first = (value: string | undefined): string | undefined => value?.split(",")[0]?.trim().toLowerCase();

/** Base URL that the proxy tells of, or null where it tells nothing usable. */
export function forwardedBase(header: (name: string) => string | undefined, fallback: string): string | null {
  const protocol = first(header("x-forwarded-proto"));
  const host = first(header("x-forwarded-host"));
  if (protocol === undefined && host === undefined) return null;
  if (protocol !== undefined && protocol !== "http" && protocol !== "https") return null;
  if (host !== undefined && !/^(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/.test(host)) return null;
  const base = new URL(fallback);
  const origin = `${protocol ?? base.protocol.slice(0, -1)}://${host ?? base.host}`;
  return URL.canParse(origin) ? `${new URL(origin).origin}${base.pathname.replace(/\/+$/, "")}` : null;
}

export interface ForwardedLinks {
  /** As `base`, or as the proxy says while a request is handled. */
  readonly links: Links;
  readonly middleware: MiddlewareHandler;
}

export function createForwardedLinks(base: Links): ForwardedLinks {
  const current = new AsyncLocalStorage<Links>();
  const now = (): Links => current.getStore() ?? base;
  return {
    links: {
      get publicUrl() {
        return now().publicUrl;
      },
      get allowHost() {
        return now().allowHost;
      },
      upload: (ticket) => now().upload(ticket),
      download: (ticket, filename) => now().download(ticket, filename),
      curlUpload: (ticket, filename, offset) => now().curlUpload(ticket, filename, offset),
      curlDownload: (ticket, filename) => now().curlDownload(ticket, filename),
      cliUpload: (ticket, filename) => now().cliUpload(ticket, filename),
      cliDownload: (ticket, filename) => now().cliDownload(ticket, filename),
    },
    middleware: async function forwarded(c, next) {
      const told = forwardedBase((name) => c.req.header(name), base.publicUrl);
      if (told === null) return next();
      return current.run(createLinks(told), next);
    },
  };
}
