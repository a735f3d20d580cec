/** Peer: `@tus/server` with `@tus/file-store` in Hono by `handleWeb`, the plain set-up that a user would write. */
import { serve } from "@hono/node-server";
import { FileStore } from "@tus/file-store";
import { Server } from "@tus/server";
import { Hono } from "hono";

const [port = "0", dir = "."] = process.argv.slice(2);

const tus = new Server({ path: "/files", datastore: new FileStore({ directory: dir }) });
const app = new Hono();
app.all("/files", (c) => tus.handleWeb(c.req.raw));
app.all("/files/*", (c) => tus.handleWeb(c.req.raw));
serve({ fetch: app.fetch, hostname: "127.0.0.1", port: Number(port) });
