/** Puts a server together from its settings, starts it and stops it. */
import { createMcpEndpoint, type McpEndpoint } from "../mcp/endpoint.ts";
import { fileTaskTools } from "../mcp/tools/file-task-tools.ts";
import { openStore, type Store } from "../store/open-store.ts";
import { registerFileKinds } from "../tasks/kinds/register.ts";
import type { TransferLimits } from "../transfer/engine.ts";
import { createLinks } from "../transfer/links.ts";
import { createFilesApp } from "../tus/files-app.ts";
import { createApp } from "./app.ts";
import type { ServerConfig } from "./config.ts";
import { createForwardedLinks } from "./forwarded.ts";
import { type Application, type Listening, listen } from "./listen.ts";
import type { Logger } from "./log.ts";
import { hostInUrl } from "./loopback.ts";
import { createReadiness } from "./readiness.ts";
import { requestIdOf } from "./request-id.ts";
import { startSweepTimer } from "./sweep-timer.ts";
import { packageVersion } from "./version.ts";

/** Downloads and calls that run get this long to end; uploads are ended at once, since they go on elsewhere. */
const stopGraceMs = 10_000;
/** For the state store's last commit, where the grace has been used up. */
const closeGraceMs = 1_000;

/** Everybody, as long as nobody is asked who they are. */
const principal = "local";

export interface RunningServer {
  readonly publicUrl: string;
  readonly mcpUrl: string;
  readonly tusUrl: string;
  readonly dataDir: string;
  /**
   * Takes no new requests, lets running writes commit what they have, gives everything else 10 s, closes the store. Safe to
   * call again: it is one stop.
   */
  stop(): Promise<void>;
}

/** Opens the data folder alone, as every command does that works on it. */
export function openConfiguredStore(config: ServerConfig, logger: Logger): Promise<Store> {
  return openStore({
    dataDir: config.dataDir,
    fsync: config.fsync,
    limits: limitsOf(config),
    quota: { maxBytes: config.quotaBytes, maxFiles: config.quotaFiles },
    minFreeBytes: config.minFreeBytes,
    log: logger.log,
  });
}

function limitsOf(config: ServerConfig): TransferLimits {
  return {
    maxFileBytes: config.maxFileBytes,
    inlineChunkBytes: config.inlineChunkBytes,
    inlineFileBytes: config.inlineFileBytes,
    uploadTtlMs: config.uploadTtl,
    fileTtlMs: config.fileTtl,
    downloadTtlMs: config.downloadTtl,
  };
}

/** @throws ListenError where the address cannot be had; the store is closed again then. */
export async function startServer(config: ServerConfig, logger: Logger): Promise<RunningServer> {
  const version = packageVersion();
  const store = await openConfiguredStore(config, logger);
  const { allowImport, importRoots } = config;
  registerFileKinds(store.tasks, { transfers: store.transfers, allowImport, importRoots });
  const state = { stopping: false };
  let mcp: McpEndpoint | undefined;
  let publicUrl = "";

  const application = (port: number): Application => {
    publicUrl = config.publicUrl ?? `http://${hostInUrl(config.host)}:${port}`;
    const { links, middleware } = createForwardedLinks(createLinks(publicUrl));
    const { transfers: engine } = store;
    mcp = createMcpEndpoint({
      engine,
      tasks: store.tasks,
      moreTools: fileTaskTools,
      links,
      principalOf: () => principal,
      allowedHosts: [],
      allowedOrigins: config.allowedOrigins,
      log: logger.log,
      serverInfo: { name: "longshore", title: "Longshore", version },
      requestIdOf,
    });
    const files = createFilesApp({
      engine,
      links,
      authenticate: async () => principal,
      log: logger.log,
      requestIdFor: requestIdOf,
    });
    const readiness = createReadiness({
      probe: () => store.probe(),
      dataDir: config.dataDir,
      minFreeBytes: config.minFreeBytes,
      isStopping: () => state.stopping,
    });
    const app = createApp({
      version,
      publicUrl,
      links,
      followProxy: config.trustProxy ? middleware : null,
      allowedOrigins: config.allowedOrigins,
      files,
      mcp,
      readiness,
      logger,
    });
    return (request, bindings) => app.fetch(request, bindings);
  };

  let listening: Listening;
  try {
    listening = await listen({ host: config.host, port: config.port, log: logger.log, application });
  } catch (error) {
    await store.close();
    throw error;
  }
  const sweeps = startSweepTimer({
    sweep: () => store.sweep(),
    isTight: () => store.isTight(),
    log: logger.log,
  });
  logger.log({
    level: "info",
    event: "server.started",
    version,
    host: config.host,
    port: listening.port,
    publicUrl,
    dataDir: config.dataDir,
  });

  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    state.stopping = true;
    logger.log({ level: "info", event: "server.stopping" });
    const deadline = performance.now() + stopGraceMs;
    // The engine and the endpoint end what runs and let it answer; the listener waits for the answers to leave.
    const [clean] = await Promise.all([
      listening.stop(stopGraceMs),
      by(deadline, store.transfers.close()),
      by(deadline, mcp?.close()),
    ]);
    await by(deadline, sweeps.stop());
    await by(deadline + closeGraceMs, store.close());
    logger.log({ level: "info", event: "server.stopped", cut: !clean });
  };
  return {
    publicUrl,
    mcpUrl: `${publicUrl}/mcp`,
    tusUrl: `${publicUrl}/files`,
    dataDir: config.dataDir,
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}

/** A stop must come to its end whatever hangs: what is acknowledged is safe, and the next start takes up the rest. */
async function by(deadline: number, work: Promise<void> | undefined): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, deadline - performance.now()));
  });
  await Promise.race([work, late]).finally(() => clearTimeout(timer));
}
