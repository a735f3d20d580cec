/** sha256 as the bytes go by, and as header fields tell it. */

/** Of the whole, in order. */
export interface RunningHash {
  update(bytes: Uint8Array): void;
  /** Lower-case hex; once. */
  digest(): string;
}

/** What differs between Node and browsers. */
export interface Platform {
  newSha256(): Promise<RunningHash> | RunningHash;
}

/** Lower-case hex of `sha-256` in `Repr-Digest` (RFC 9530); null where there is none. */
export function sha256In(field: string | null): string | null {
  const base64 = /(?:^|[,\s])sha-256=:([A-Za-z0-9+/]{43}=):/.exec(field ?? "")?.[1];
  if (base64 === undefined) return null;
  return [...atob(base64)].map((byte) => byte.charCodeAt(0).toString(16).padStart(2, "0")).join("");
}
