/**
 * The endpoint of `longshore stdio` with the jobs of the tests in it, some of which ask: `node stdio-jobs.ts DATA_DIR`. Its files are
 * reached by nobody; ends when its host closes the pipe.
 */
import { openStore } from "../../../src/index.ts";
import { createStdioEndpoint } from "../../../src/mcp/stdio-endpoint.ts";
import { createLinks } from "../../../src/transfer/links.ts";
import { jobKinds, jobTools } from "../../support/task-jobs.ts";

const [dataDir = ""] = process.argv.slice(2);

const store = await openStore({ dataDir, fsync: "never", minFreeBytes: 0 });
for (const kind of jobKinds) store.tasks.register(kind);
const endpoint = createStdioEndpoint({
  engine: store.transfers,
  tasks: store.tasks,
  moreTools: jobTools,
  links: createLinks("http://127.0.0.1:1"),
  log: store.log,
  serverInfo: { name: "stdio-jobs", version: "1.0.0" },
  input: process.stdin,
  output: process.stdout,
});
await endpoint.closed;
await endpoint.close();
await store.close();
