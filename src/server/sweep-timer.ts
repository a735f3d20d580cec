/** Sweeps in the background while the server runs. */
import type { Log } from "../log.ts";

export interface SweepTimer {
  /** Resolves when a sweep that runs has ended. */
  stop(): Promise<void>;
}

export interface SweepTimerOptions {
  readonly sweep: () => Promise<unknown>;
  readonly everyMs: number;
  readonly log: Log;
}

export function startSweepTimer(options: SweepTimerOptions): SweepTimer {
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();

  const sweep = async (): Promise<void> => {
    try {
      // What it found, the engine tells the log itself.
      await options.sweep();
    } catch (error) {
      options.log({ level: "warn", event: "server.sweep_failed", error });
    }
    schedule();
  };
  const schedule = (): void => {
    if (stopped) return;
    // Servers on one data folder that were started together must not sweep together for ever.
    const delayMs = options.everyMs * (0.75 + Math.random() / 2);
    timer = setTimeout(() => {
      running = sweep();
    }, delayMs).unref();
  };

  schedule();
  return {
    stop: () => {
      stopped = true;
      clearTimeout(timer);
      return running;
    },
  };
}
