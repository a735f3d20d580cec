/** How a command that runs until it is told to stop hears of it. */

const stopSignals = ["SIGTERM", "SIGINT"] as const;

/** Resolves with the first signal to stop. The second one ends the process at once: somebody will not wait. */
export function nextStopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of stopSignals) {
      process.once(signal, () => {
        resolve();
        process.once(signal, () => process.exit(1));
      });
    }
  });
}
