/** Where an import's bytes come from: something that can be opened at an offset, and says whether it is still the same. */
import type { Readable } from "node:stream";

/** What is known once a source has been opened. JSON, so that it can be a step's result. */
export type SourceFacts = {
  readonly filename: string;
  readonly contentType: string | null;
  /** Null where the source does not say. */
  readonly sizeBytes: number | null;
  /** Changes whenever the bytes do; null where the source offers nothing of that strength. */
  readonly validator: string | null;
};

/** A running read. */
export interface OpenSource {
  readonly facts: SourceFacts;
  /** Offset of the first byte of `stream`. */
  readonly start: number;
  readonly stream: Readable;
  /** After the end: whether the source is still what was read. */
  isSame(): Promise<boolean>;
  /** Stops the read and frees what it holds. */
  close(): void;
}

export type Opening =
  | { readonly kind: "open"; readonly source: OpenSource }
  /** There is nothing after the offset. */
  | { readonly kind: "at_end" }
  /** Other bytes than before; read from their start where the source has begun to send them. */
  | { readonly kind: "changed"; readonly source: OpenSource | null };

export interface Source {
  /** For messages: without what may be secret in a URL. */
  readonly label: string;
  /**
   * From the start (null), or from an offset of what `facts` tell of.
   *
   * @throws SourceTrouble where trying again may help, TransferError where it will not.
   */
  open(
    from: { readonly offset: number; readonly facts: SourceFacts } | null,
    signal: AbortSignal,
  ): Promise<Opening>;
}

/** Something that may be over in a while. */
export class SourceTrouble extends Error {
  override readonly name = "SourceTrouble";
  /** What the source asks for. */
  readonly retryAfterMs: number;

  constructor(message: string, retryAfterMs = 0) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}
