/**
 * The HTTP doors for somebody's own app: `/files` and `/d` with the same guards as on a server of ours, to be mounted under any path. It
 * touches no other route of the app that it is mounted in.
 */
import { Hono } from "hono";
import { asTransferError, TransferError } from "../errors.ts";
import type { Log } from "../log.ts";
import type { TransferEngine } from "../transfer/engine.ts";
import type { Links } from "../transfer/links.ts";
import { createFilesApp } from "../tus/files-app.ts";
import { createCors } from "./create-cors.ts";
import { hostnameOf, isAllowedHost, originGuard } from "./guards.ts";
import { problemResponse } from "./problem-response.ts";
import { requestIdOf } from "./request-id.ts";

export interface FilesSubAppOptions {
  readonly engine: TransferEngine;
  readonly links: Links;
  /** Principal of a caller who creates an upload with `POST /files`. */
  readonly authenticate: (request: Request) => Promise<string>;
  /** Host names, without port, besides loopback names and that of the public URL. */
  readonly allowedHosts: readonly string[];
  /** Origins of pages that may create uploads, besides loopback and that of the public URL. */
  readonly allowedOrigins: readonly string[];
  readonly log: Log;
}

/** A Hono app. */
export type FilesSubApp = Hono;

export function createFilesSubApp(options: FilesSubAppOptions): FilesSubApp {
  const { engine, links, authenticate, allowedHosts, allowedOrigins, log } = options;
  const { publicUrl } = links;
  const neighbourhood = { publicUrl: () => publicUrl, allowedOrigins };
  const app = new Hono();
  app.onError((thrown, c) => problemResponse(asTransferError(thrown), requestIdOf(c.req.raw)));
  // Named one by one: a bare `use` would stand before every route of an app that mounts this one at its root.
  for (const path of ["/files/*", "/d/*"])
    app.use(path, async function checkHost(c, next) {
      const host = c.req.header("host");
      if (!isAllowedHost(host, publicUrl) && !allowedHosts.includes(hostnameOf(host) ?? ""))
        throw new TransferError(
          "forbidden",
          `This server does not answer to the host ${JSON.stringify(host ?? "")}.`,
          {
            recoveryHint: `Use ${publicUrl}, or ask the operator to allow the host.`,
          },
        );
      await next();
    });
  for (const path of ["/files", "/files/"]) {
    app.use(path, createCors(neighbourhood));
    app.use(path, originGuard(neighbourhood));
  }
  app.route("/", createFilesApp({ engine, links, authenticate, log, requestIdFor: requestIdOf }));
  return app;
}
