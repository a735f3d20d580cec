/** What the digest follower and its worker tell each other. */
export type FollowerRequest =
  | {
      readonly kind: "advance";
      readonly key: string;
      readonly path: string;
      readonly start: number;
      readonly end: number;
    }
  /** `now`: of what is hashed at this moment; else once all that was told before is hashed. */
  | { readonly kind: "digest"; readonly key: string; readonly digestId: number; readonly now: boolean }
  | { readonly kind: "drop"; readonly key: string };

export type FollowerReply =
  | { readonly digestId: number; readonly bytes: number; readonly hex: string }
  | { readonly digestId: number; readonly failed: string };
