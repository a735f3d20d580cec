/** Peer for downloads: a bare Node HTTP server that streams a file, or a range of it, with `fs.createReadStream`. */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";

const [port = "0", dir = "."] = process.argv.slice(2);

async function send(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = join(dir, (request.url ?? "").replaceAll(/[^\w.-]/g, ""));
  const { size } = await stat(path);
  const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "");
  if (range === null) {
    response.writeHead(200, { "Content-Length": size });
    await pipeline(createReadStream(path), response);
    return;
  }
  const start = Number(range[1]);
  const end = Number(range[2]);
  response.writeHead(206, {
    "Content-Length": end - start + 1,
    "Content-Range": `bytes ${start}-${end}/${size}`,
  });
  await pipeline(createReadStream(path, { start, end }), response);
}

http
  .createServer((request, response) => {
    send(request, response).catch(() => response.destroy());
  })
  .listen(Number(port), "127.0.0.1");
