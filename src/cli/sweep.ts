/** `longshore sweep`: removes what has expired, as a server does every few minutes. Safe beside running servers. */
import type { Run } from "./command-context.ts";
import { withExistingStore } from "./existing-store.ts";

/** What was deleted stays on the disk for a while: whoever has just deleted wonders. */
const waiting = (files: number, until: Date | null): string =>
  until === null
    ? ""
    : `\nDeleted and still on disk: ${files} ${files === 1 ? "file" : "files"}. A sweep removes the first of them after ${until.toISOString()}.`;

export const sweep: Run = (context) =>
  withExistingStore(context, async (store) => {
    const report = await store.sweep();
    // What a dead process left was found when the store was opened.
    const adoptedOrphans = report.adoptedOrphans + store.recovery.adoptedUploads;
    if (context.json) context.print(JSON.stringify({ ...report, adoptedOrphans }));
    else
      context.print(
        `Marked as expired: ${report.markedExpired}. Removed: ${report.removedUploads} uploads, ` +
          `${report.removedTasks} tasks, ${report.removedBlobs} files on disk. Taken over from dead processes: ${adoptedOrphans}.` +
          waiting(report.waitingBlobs, report.waitsUntil),
      );
    return 0;
  });
