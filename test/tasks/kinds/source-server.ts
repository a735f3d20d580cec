/** A real HTTP server on loopback that serves one file, well or badly, and keeps account of what it was asked. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface Request {
  readonly path: string;
  readonly range: string | null;
  readonly ifRange: string | null;
  /** Bytes of the body that were handed to the socket. */
  sentBytes: number;
}

export interface SourceServer {
  readonly url: string;
  readonly port: number;
  readonly requests: Request[];
}

export type Answer = (request: IncomingMessage, response: ServerResponse, account: Request) => void;

export async function serveSource(answer: Answer): Promise<SourceServer> {
  const requests: Request[] = [];
  const server = createServer((request, response) => {
    const { range = null, "if-range": ifRange } = request.headers;
    const account = {
      path: request.url ?? "",
      range,
      ifRange: typeof ifRange === "string" ? ifRange : null,
      sentBytes: 0,
    };
    requests.push(account);
    response.on("error", () => {});
    answer(request, response, account);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port, requests };
}

export interface FileAnswer {
  readonly bytes: Buffer;
  readonly etag?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Breaks the connection off after this many bytes of a body. */
  readonly breakAfter?: number;
  /** Sends no more than this at once, then waits. */
  readonly pieceBytes?: number;
  readonly pauseMs?: number;
  /** Without Content-Length. */
  readonly chunked?: boolean;
}

/** As static file servers do it: ranges, `If-Range`, 416. */
export function sendFile(
  request: IncomingMessage,
  response: ServerResponse,
  account: Request,
  file: FileAnswer,
): void {
  const { bytes, etag = '"v1"', headers = {}, chunked = false } = file;
  const common = { ...(etag !== "" && { etag }), "accept-ranges": "bytes", ...headers };
  const range = /^bytes=(\d+)-$/.exec(request.headers.range ?? "");
  const ifRange = request.headers["if-range"];
  let start = 0;
  if (range !== null && (ifRange === undefined || ifRange === etag)) {
    start = Number(range[1]);
    if (start >= bytes.byteLength) {
      response.writeHead(416, { ...common, "content-range": `bytes */${bytes.byteLength}` }).end();
      return;
    }
    response.writeHead(206, {
      ...common,
      "content-range": `bytes ${start}-${bytes.byteLength - 1}/${bytes.byteLength}`,
      ...(!chunked && { "content-length": bytes.byteLength - start }),
    });
  } else response.writeHead(200, { ...common, ...(!chunked && { "content-length": bytes.byteLength }) });
  void send(response, bytes.subarray(start), account, file);
}

async function send(
  response: ServerResponse,
  bytes: Buffer,
  account: Request,
  file: FileAnswer,
): Promise<void> {
  const { breakAfter = Number.POSITIVE_INFINITY, pieceBytes = 65_536, pauseMs = 0 } = file;
  for (let at = 0; at < bytes.byteLength && !response.destroyed; ) {
    const end = Math.min(at + pieceBytes, bytes.byteLength, breakAfter);
    await new Promise<void>((sent) => {
      response.once("close", sent);
      response.write(bytes.subarray(at, end), () => {
        response.off("close", sent);
        sent();
      });
    });
    account.sentBytes += end - at;
    at = end;
    if (at >= breakAfter) {
      // What has left is to arrive before the connection breaks; the first read is taken up only when an upload is there for it.
      await new Promise((go) => setTimeout(go, account.range === null ? 500 : 50));
      response.destroy();
      return;
    }
    if (pauseMs > 0) await new Promise((go) => setTimeout(go, pauseMs));
  }
  response.end();
}
