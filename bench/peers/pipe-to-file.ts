/** Peer: a bare Node HTTP server that pipes each body into a file of the request's name. */
import { createWriteStream } from "node:fs";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";

const [port = "0", dir = "."] = process.argv.slice(2);

async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const name = (request.url ?? "").replaceAll(/[^\w.-]/g, "");
  await pipeline(request, createWriteStream(join(dir, name)));
  response.writeHead(204).end();
}

http
  .createServer((request, response) => {
    receive(request, response).catch(() => response.destroy());
  })
  .listen(Number(port), "127.0.0.1");
