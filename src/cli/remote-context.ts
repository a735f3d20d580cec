/** What the commands over a running server are given. */

export interface RemoteContext {
  /** Base URL of the server, without a slash at the end. */
  readonly url: string;
  /** API key or access token; null where there is none. */
  readonly key: string | null;
  /** One line of JSON on stdout instead of text for people. */
  readonly json: boolean;
  /** Writes a line to stdout. */
  readonly print: (line: string) => void;
  /** Writes a line for people to stderr. */
  readonly note: (line: string) => void;
  /** Aborts when the person wants to stop. */
  readonly signal: AbortSignal;
}

/** A command; resolves with the exit status of the process. */
export type RunRemote<Given> = (context: RemoteContext, given: Given) => Promise<number>;
