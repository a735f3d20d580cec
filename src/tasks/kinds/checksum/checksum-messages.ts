/** What the thread of a checksum is told, and what it answers. */
export interface ChecksumRequest {
  /** Null: that was all. */
  readonly piece: Uint8Array | null;
}

export type ChecksumReply = { readonly hashedBytes: number } | { readonly digests: Record<string, string> };
