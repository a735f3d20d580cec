/** What every layer may say to the log of the process. The process decides what is kept and where it goes. */

export type LogLevel = "debug" | "info" | "warn" | "error";

/**
 * One thing that happened. `event` is a short fixed name (`upload_complete`), everything else a field of its own, so that a
 * log can be searched. Tickets, keys and tokens do not belong in a field.
 */
export interface LogEvent {
  readonly level: LogLevel;
  readonly event: string;
  readonly [field: string]: unknown;
}

/** Never throws, never waits. */
export type Log = (event: LogEvent) => void;
