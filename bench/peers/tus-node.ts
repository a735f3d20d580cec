/** Peer: `@tus/server` with `@tus/file-store` on Node's own request and response. */
import http from "node:http";
import { FileStore } from "@tus/file-store";
import { Server } from "@tus/server";

const [port = "0", dir = "."] = process.argv.slice(2);

const tus = new Server({ path: "/files", datastore: new FileStore({ directory: dir }) });
http
  .createServer((request, response) => void tus.handle(request, response))
  .listen(Number(port), "127.0.0.1");
