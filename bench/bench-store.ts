/** A real store for programs of the benchmark: what is acknowledged is on the disk, and nothing is limited that would be in the way. */
import { openStore, type Store } from "../src/store/open-store.ts";

const hourMs = 3_600_000;

export function openBenchStore(dataDir: string): Promise<Store> {
  return openStore({
    dataDir,
    fsync: "always",
    quota: { maxBytes: null, maxFiles: null },
    minFreeBytes: 0,
    log: ({ level, event, ...rest }) => {
      if (level === "error") process.stderr.write(`${event} ${JSON.stringify(rest)}\n`);
    },
    limits: {
      maxFileBytes: 2 ** 40,
      inlineChunkBytes: 262_144,
      inlineFileBytes: 4_194_304,
      uploadTtlMs: 24 * hourMs,
      fileTtlMs: null,
      downloadTtlMs: hourMs,
    },
  });
}
