/** Peer: a Node HTTP server that reads each body and keeps nothing: the ceiling of Node's HTTP parser. */
import http from "node:http";

const [port = "0"] = process.argv.slice(2);

http
  .createServer((request, response) => {
    request.on("data", () => {});
    request.on("end", () => response.writeHead(204).end());
  })
  .listen(Number(port), "127.0.0.1");
