/** Sweeps in the background while the server runs: every few minutes, and each minute while the disk is short of space. */
import type { Log } from "../log.ts";

export interface SweepTimer {
  /** Resolves when a sweep that runs has ended. */
  stop(): Promise<void>;
}

export interface SweepTimerOptions {
  readonly sweep: () => Promise<unknown>;
  /** Whether sweeping should not wait: somebody may be deleting to make room. */
  readonly isTight: () => Promise<boolean>;
  readonly log: Log;
}

/** So often the disk is looked at; what was deleted on a full one goes after as long. */
const lookEveryMs = 60_000;
const sweepEveryMs = 5 * 60_000;

export function startSweepTimer(options: SweepTimerOptions): SweepTimer {
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let dueInMs = 0;

  const look = async (): Promise<void> => {
    try {
      if (dueInMs <= 0 || (await options.isTight())) {
        restart();
        // What it found, the engine tells the log itself.
        await options.sweep();
      }
    } catch (error) {
      options.log({ level: "warn", event: "server.sweep_failed", error });
    }
    schedule();
  };
  const restart = (): void => {
    dueInMs = varied(sweepEveryMs);
  };
  const schedule = (): void => {
    if (stopped) return;
    const delayMs = Math.min(varied(lookEveryMs), dueInMs);
    dueInMs -= delayMs;
    timer = setTimeout(() => {
      running = look();
    }, delayMs).unref();
  };

  restart();
  schedule();
  return {
    stop: () => {
      stopped = true;
      clearTimeout(timer);
      return running;
    },
  };
}

/** Servers on one data folder that were started together must not sweep together for ever. */
const varied = (ms: number): number => ms * (0.75 + Math.random() / 2);
