/** What the client for small requests is told to do, and what it answers: JSON on its stdin and stdout. */

export interface RequestPlan {
  readonly port: number;
  /** Connections, each with one request at a time. */
  readonly connections: number;
  /**
   * Whole requests in latin1, taken in turn. `{n}` in the request line becomes the number of the turn.
   */
  readonly requests: readonly string[];
  /** Sent after each answer on the same connection; `{location}` becomes the path of its `Location`. */
  readonly followUp: string | null;
  /** The only status that counts as success, of the request and of its follow-up. */
  readonly expect: number;
  readonly expectFollowUp: number;
  /** Ends after so many turns, or after so long, whichever comes first. */
  readonly turns: number;
  readonly durationMs: number;
}

export interface RequestResult {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly turns: number;
  readonly bodyBytes: number;
  /** Paths of up to 32 of the answers' `Location`, from all over the run. */
  readonly locations: readonly string[];
}
