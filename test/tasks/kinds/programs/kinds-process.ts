/**
 * A process that takes the kinds of work on files, to be killed by tests. Arguments: the data folder, and how many bytes of stored files it
 * can read before its disk hangs (all, where left out). Says `ready` once it takes tasks.
 */
import { openStore } from "../../../../src/store/open-store.ts";
import { registerFileKinds } from "../../../../src/tasks/kinds/register.ts";
import { diskThatHangs, readingFrom } from "../slow-files.ts";

const [dataDir = "", readableBytes] = process.argv.slice(2);

const store = await openStore({
  dataDir,
  fsync: "never",
  limits: {
    maxFileBytes: 2 ** 40,
    inlineChunkBytes: 262_144,
    inlineFileBytes: 4_194_304,
    uploadTtlMs: 86_400_000,
    fileTtlMs: null,
    downloadTtlMs: 3_600_000,
  },
  quota: { maxBytes: null, maxFiles: null },
  minFreeBytes: 0,
  log: ({ level, event, ...rest }) => {
    if (level === "error") process.stderr.write(`${event} ${JSON.stringify(rest)}\n`);
  },
});
const tasks =
  readableBytes === undefined ? store.tasks : readingFrom(diskThatHangs(Number(readableBytes)), store.tasks);
registerFileKinds(tasks, {
  transfers: store.transfers,
  allowImport: ["127.0.0.1"],
  importRoots: [],
});
// A store alone keeps no process.
setInterval(() => {}, 60_000);
process.stdout.write("ready\n");
