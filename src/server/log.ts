/** The log of the process: one JSON object a line. */
import type { Log, LogEvent, LogLevel } from "../log.ts";
import { isSecretField, redactText } from "./redact.ts";

const rank: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

const deepestCause = 4;

/** An error with what a person needs to find its place; `JSON.stringify` alone would write `{}`. */
function describeError(error: Error, depth = 0): Record<string, unknown> {
  const { code, syscall } = error as NodeJS.ErrnoException;
  return {
    name: error.name,
    message: error.message,
    ...(code !== undefined && { code }),
    ...(syscall !== undefined && { syscall }),
    stack: error.stack
      ?.split("\n")
      .slice(1, 9)
      .map((line) => line.trim()),
    ...(error.cause instanceof Error &&
      depth < deepestCause && { cause: describeError(error.cause, depth + 1) }),
  };
}

function lineOf(event: LogEvent): string {
  const replacer = (name: string, value: unknown): unknown => {
    if (name !== "" && isSecretField(name)) return "[redacted]";
    if (value instanceof Error) return describeError(value);
    return typeof value === "bigint" ? String(value) : value;
  };
  const record = { time: new Date().toISOString(), ...event };
  try {
    return redactText(JSON.stringify(record, replacer));
  } catch {
    // A field that refers to itself: what happened is worth more than the field.
    return JSON.stringify({ time: record.time, level: event.level, event: event.event, unwritable: true });
  }
}

export interface Logger {
  readonly log: Log;
  /** Lets a caller skip work for lines that nobody will see. */
  writes(level: LogLevel): boolean;
}

/** @param write takes one line with its line end; it must not throw. */
export function createLogger(
  lowest: LogLevel,
  write: (line: string) => void = (line) => void process.stderr.write(line),
): Logger {
  const writes = (level: LogLevel): boolean => rank[level] >= rank[lowest];
  return {
    writes,
    log: (event) => {
      if (writes(event.level)) write(`${lineOf(event)}\n`);
    },
  };
}
