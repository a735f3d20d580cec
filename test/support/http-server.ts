/**
 * The HTTP doors before a real engine in a folder of its own, on a real listener: what most tests of `src/tus` talk to. Also
 * a client of bare sockets, for what no HTTP library would send.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import os from "node:os";
import path from "node:path";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import type { LogEvent } from "../../src/log.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { TransferEngine, TransferLimits } from "../../src/transfer/engine.ts";
import { createLinks, type Links } from "../../src/transfer/links.ts";
import { holdContinue } from "../../src/tus/expect-continue.ts";
import { createFilesApp, type FilesAppOptions } from "../../src/tus/files-app.ts";

export interface FilesServerOptions extends Partial<Omit<FilesAppOptions, "links" | "log">> {
  readonly limits?: Partial<TransferLimits>;
  /** Path the files app is mounted under; default at the root. */
  readonly mountPath?: string;
  /** Puts middleware of a user's own in front. */
  readonly outer?: (app: Hono) => void;
  /** Whether `Expect: 100-continue` is answered only when the bytes are wanted; default yes. */
  readonly holdContinue?: boolean;
  /** Stands before the engine. */
  readonly wrapEngine?: (engine: TransferEngine) => TransferEngine;
}

export interface FilesServer {
  /** Base of all URLs, mount path included, no slash at the end. */
  readonly url: string;
  readonly port: number;
  readonly server: Server;
  readonly app: Hono;
  readonly engine: TransferEngine;
  readonly links: Links;
  readonly logged: LogEvent[];
  readonly dataDir: string;
  close(): Promise<void>;
}

const testLimits: TransferLimits = {
  maxFileBytes: 2 ** 40,
  inlineChunkBytes: 262_144,
  inlineFileBytes: 4_194_304,
  uploadTtlMs: 24 * 3_600_000,
  fileTtlMs: null,
  downloadTtlMs: 3_600_000,
};

/** Starts on 127.0.0.1 at a free port. The principal is `local`. Close it in the end, before the leak check. */
export async function startFilesServer(options: FilesServerOptions = {}): Promise<FilesServer> {
  const dataDir = await mkdtemp(path.join(os.tmpdir(), "longshore-http-"));
  const logged: LogEvent[] = [];
  const log = (event: LogEvent): void => void logged.push(event);
  const store = await openStore({
    dataDir,
    fsync: "never",
    limits: { ...testLimits, ...options.limits },
    quota: { maxBytes: null, maxFiles: null },
    minFreeBytes: 0,
    log,
  });
  const engine = options.engine ?? options.wrapEngine?.(store.transfers) ?? store.transfers;
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const mountPath = options.mountPath ?? "";
  const url = `http://127.0.0.1:${port}${mountPath}`;
  const links = createLinks(url);
  const files = createFilesApp({
    authenticate: async () => "local",
    ...options,
    engine,
    links,
    log,
  });
  const app = new Hono();
  options.outer?.(app);
  app.route(mountPath === "" ? "/" : mountPath, files);
  server.on("request", getRequestListener(app.fetch));
  if (options.holdContinue !== false) holdContinue(server, (target) => target.includes("/files"));
  return {
    url,
    port,
    server,
    app,
    engine,
    links,
    logged,
    dataDir,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await store.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** A bare connection: writes what it is told, and gives what has come back as text. */
export class RawConnection {
  readonly socket: Socket;
  /** Everything received so far, one character a byte. */
  received = "";
  closed = false;
  readonly #waiting = new Set<() => void>();

  constructor(port: number) {
    this.socket = connect(port, "127.0.0.1");
    const wake = (): void => {
      for (const look of this.#waiting) look();
    };
    this.socket.on("data", (piece) => {
      this.received += piece.toString("latin1");
      wake();
    });
    this.socket.on("error", () => {});
    this.socket.on("close", () => {
      this.closed = true;
      wake();
    });
  }

  /** A request head: each line ends in CRLF, and an empty line follows. */
  head(...lines: string[]): this {
    this.socket.write(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
    return this;
  }

  write(bytes: string | Uint8Array): this {
    this.socket.write(bytes);
    return this;
  }

  /** Resolves with what was received once `enough` holds for it; rejects after `ms`, or when the connection ends before. */
  until(enough: RegExp | ((received: string) => boolean), ms = 10_000): Promise<string> {
    const holds = (): boolean =>
      enough instanceof RegExp ? enough.test(this.received) : enough(this.received);
    return new Promise((resolve, reject) => {
      const settle = (then: () => void): void => {
        clearTimeout(timer);
        this.#waiting.delete(look);
        then();
      };
      const look = (): void => {
        if (holds()) settle(() => resolve(this.received));
        else if (this.closed)
          settle(() => reject(new Error(`closed after ${JSON.stringify(this.received)}`)));
      };
      const timer = setTimeout(
        () => settle(() => reject(new Error(`still waiting after ${JSON.stringify(this.received)}`))),
        ms,
      );
      this.#waiting.add(look);
      look();
    });
  }

  /** Resolves when the server has ended the connection. */
  async ended(ms = 10_000): Promise<string> {
    if (!this.closed) {
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error("the connection is still open")), ms);
        this.socket.once("close", () => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    return this.received;
  }

  end(): void {
    this.socket.destroy();
  }
}
