/** The one row of an upload: how it is found, and how a lease on it ends. */
import { prepared } from "../operation.ts";
import type { UploadRow } from "../schema.ts";

export const uploadByHandle = prepared((db, p: { handle: string }) =>
  db.selectFrom("upload").selectAll().where("handle", "=", p.handle),
);

/** What is decided when an upload changes its state for good; its indices are all rewritten, so not for every write. */
type StateColumns = Pick<
  UploadRow,
  | "id"
  | "status"
  | "size_bytes"
  | "offset_bytes"
  | "sha256"
  | "generation"
  | "fence"
  | "lease_owner"
  | "lease_active"
  | "updated_at"
  | "completed_at"
  | "expires_at"
>;

export const updateState = prepared((db, p: StateColumns) =>
  db
    .updateTable("upload")
    .set((eb) => ({
      status: p.status,
      size_bytes: p.size_bytes,
      offset_bytes: p.offset_bytes,
      sha256: p.sha256,
      generation: p.generation,
      fence: p.fence,
      lease_owner: p.lease_owner,
      lease_active: p.lease_active,
      lease_request: eb.lit(null),
      updated_at: p.updated_at,
      completed_at: p.completed_at,
      expires_at: p.expires_at,
      marked_at: eb.lit(null),
      bytes_per_second: eb.lit(null),
    }))
    .where("id", "=", p.id),
);

/** The row as `updateState` leaves it. */
export const withState = (row: UploadRow, change: Partial<StateColumns>): UploadRow => ({
  ...row,
  ...change,
  lease_request: null,
  marked_at: null,
  bytes_per_second: null,
});
