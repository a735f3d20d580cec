/** What goes into an archive. JSON, so that a second run packs exactly what the first one did. */
export type ArchiveEntry = {
  readonly handle: string;
  readonly name: string;
  readonly size: number;
  /** Milliseconds; of the record and not of the clock, so that the same files make the same archive. */
  readonly modifiedAt: number;
};

export type OpenEntry = (entry: ArchiveEntry) => Promise<import("node:stream").Readable>;
