/** `longshore sweep`: removes what has expired, as a server does every few minutes. Safe beside running servers. */
import { existsSync } from "node:fs";
import { openConfiguredStore } from "../server/server.ts";
import { CommandError, type Run } from "./command-context.ts";

export const sweep: Run = async ({ config, logger, json, print }) => {
  // Opening would make one: whoever mistypes the folder should hear of it.
  if (!existsSync(config.dataDir)) throw new CommandError(`There is no data folder at ${config.dataDir}.`);
  const store = await openConfiguredStore(config, logger);
  try {
    const report = await store.transfers.sweep();
    // What a dead process left was found when the store was opened.
    const adoptedOrphans = report.adoptedOrphans + store.recovery.adoptedUploads;
    if (json) print(JSON.stringify({ ...report, adoptedOrphans }));
    else
      print(
        `Marked as expired: ${report.markedExpired}. Removed: ${report.removedUploads} uploads, ` +
          `${report.removedBlobs} files on disk. Taken over from dead processes: ${adoptedOrphans}.`,
      );
  } finally {
    await store.close();
  }
  return 0;
};
