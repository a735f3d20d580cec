#!/usr/bin/env node
/** The command line. Loads next to nothing itself: the size of the thread pool must be said before anything uses the pool. */
import { widenThreadPool } from "../server/config.ts";

widenThreadPool(16);
const { run } = await import("./program.ts");
process.exitCode = await run(process.argv.slice(2));
// What still holds the process then (a connection that will not end, say) is of no use to anybody.
setTimeout(() => process.exit(), 1000).unref();
