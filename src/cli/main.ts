#!/usr/bin/env node
/** The command line. Loads next to nothing itself: the size of the thread pool must be said before anything uses the pool. */
import { setFlagsFromString } from "node:v8";
import { widenThreadPool } from "../server/config.ts";

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);

if (major < 22 || (major === 22 && minor < 18)) {
  // Older ones fail later with a module that they do not know, which tells nobody what to do.
  process.stderr.write(`Longshore needs Node 22.18 or newer; this is Node ${process.versions.node}.\n`);
  process.exitCode = 1;
} else {
  widenThreadPool(16);
  // A body arrives in pieces of 64 KiB outside of the JavaScript heap, so every few tens of MiB the collector starts over a heap of
  // 17 MiB that has hardly changed. In one go that takes about 10 ms; bit by bit beside the bytes it cost 12 % of all CPU time.
  setFlagsFromString("--no-incremental-marking");
  const { run } = await import("./program.ts");
  process.exitCode = await run(process.argv.slice(2));
  // What still holds the process then (a connection that will not end, say) is of no use to anybody.
  setTimeout(() => process.exit(), 1000).unref();
}
