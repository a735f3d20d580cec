/**
 * The service for one host on this machine: MCP on a pair of streams, and the bytes over HTTP on a loopback port of its own. Any number of
 * them may work on one data folder, beside servers.
 *
 * On that port only upload and download URLs answer, which hold a ticket: nobody else of this machine is given anything by it.
 */
import type { Readable, Writable } from "node:stream";
import { TransferError } from "../errors.ts";
import { createStdioEndpoint } from "../mcp/stdio-endpoint.ts";
import { fileTaskTools } from "../mcp/tools/file-task-tools.ts";
import type { Store } from "../store/open-store.ts";
import { registerFileKinds } from "../tasks/kinds/register.ts";
import { createLinks } from "../transfer/links.ts";
import type { ServerConfig } from "./config.ts";
import { createFilesSubApp } from "./files-sub-app.ts";
import { type Application, type Listening, listen } from "./listen.ts";
import { ListenError } from "./listen-error.ts";
import type { Logger } from "./log.ts";
import { rememberedPorts, rememberPort } from "./remembered-ports.ts";
import { openConfiguredStore } from "./server.ts";
import { startSweepTimer } from "./sweep-timer.ts";
import { packageVersion } from "./version.ts";

const host = "127.0.0.1";
/** The host has gone or wants to; downloads that run get this long. Uploads are ended at once: what came is kept. */
const stopGraceMs = 2_000;

export interface StdioServer {
  /** Base of the URLs that are handed out. */
  readonly publicUrl: string;
  readonly dataDir: string;
  /** Resolves when the host has closed the pipe. */
  readonly closed: Promise<void>;
  /** Running writes commit what they have, tasks are left for the next start or another process. Safe to call again: it is one stop. */
  stop(): Promise<void>;
}

export async function startStdioServer(
  config: ServerConfig,
  logger: Logger,
  streams: { readonly input: Readable; readonly output: Writable },
): Promise<StdioServer> {
  const { log } = logger;
  const version = packageVersion();
  const store = await openConfiguredStore(config, logger);
  const { allowImport, importRoots } = config;
  registerFileKinds(store.tasks, { transfers: store.transfers, allowImport, importRoots });
  let listening: Listening;
  try {
    listening = await listenAgain(store, logger);
  } catch (error) {
    await store.close();
    throw error;
  }
  const links = createLinks(publicUrlOf(listening.port));
  const endpoint = createStdioEndpoint({
    engine: store.transfers,
    tasks: store.tasks,
    moreTools: fileTaskTools,
    links,
    log,
    serverInfo: { name: "longshore", title: "Longshore", version },
    ...streams,
  });
  const sweeps = startSweepTimer({
    sweep: () => store.sweep(),
    isTight: () => store.isTight(),
    log,
  });
  log({
    level: "info",
    event: "stdio.started",
    version,
    publicUrl: links.publicUrl,
    dataDir: store.dataDir,
  });

  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    log({ level: "info", event: "stdio.stopping" });
    await Promise.all([listening.stop(stopGraceMs), store.transfers.close(), endpoint.close()]);
    await sweeps.stop();
    await store.close();
    log({ level: "info", event: "stdio.stopped" });
  };
  return {
    publicUrl: links.publicUrl,
    dataDir: store.dataDir,
    closed: endpoint.closed,
    stop() {
      stopped ??= stop();
      return stopped;
    },
  };
}

function publicUrlOf(port: number): string {
  return `http://${host}:${port}`;
}

/** On a port that URLs of earlier processes lead to, where one is free; else on any, which is remembered then. */
async function listenAgain(store: Store, { log }: Logger): Promise<Listening> {
  const application = (port: number): Application => {
    const app = createFilesSubApp({
      engine: store.transfers,
      links: createLinks(publicUrlOf(port)),
      authenticate: refuse,
      allowedHosts: [],
      allowedOrigins: [],
      log,
    });
    return (request, bindings) => app.fetch(request, bindings);
  };
  for (const port of await rememberedPorts(store.dataDir)) {
    try {
      return await listen({ host, port, log, application });
    } catch (error) {
      if (!(error instanceof ListenError)) throw error;
    }
  }
  const listening = await listen({ host, port: 0, log, application });
  await rememberPort(store.dataDir, listening.port).catch((error: unknown) =>
    log({ level: "warn", event: "stdio.port_not_remembered", error }),
  );
  return listening;
}

async function refuse(): Promise<never> {
  throw new TransferError("unauthorized", "Uploads are created by the tool upload_create here.", {
    recoveryHint:
      "Ask the program that uses this server to call upload_create, and send the bytes to the URL that it gives.",
  });
}
