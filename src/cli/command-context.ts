/** What every command is given. */
import type { ServerConfig } from "../server/config.ts";
import type { Logger } from "../server/log.ts";

export interface CommandContext {
  readonly config: ServerConfig;
  readonly logger: Logger;
  /** One line of JSON on stdout instead of text for people. */
  readonly json: boolean;
  /** Writes a line to stdout. */
  readonly print: (line: string) => void;
}

/** A command; resolves with the exit status of the process. */
export type Run = (context: CommandContext) => Promise<number>;

/** The command cannot do what it is for; the message says why and what helps. Ends with status 1. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}
