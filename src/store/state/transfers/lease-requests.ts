/** How one request asks another process's writer to end. */
import type { LeaseRequest, LeaseRequestKind } from "../../../transfer/state-store.ts";
import { first, type Op, type OpContext, prepared, rows, run } from "../operation.ts";
import { uploadByHandle } from "./upload-row.ts";

const maxRequests = 1_000;

const setRequest = prepared((db, p: { id: number; request: LeaseRequestKind }) =>
  db.updateTable("upload").set({ lease_request: p.request }).where("id", "=", p.id),
);

const refuse = prepared((db, p: { handle: string; fence: number }) =>
  db
    .updateTable("upload")
    .set((eb) => ({ lease_request: eb.lit(null) }))
    .where("handle", "=", p.handle)
    .where("fence", "=", p.fence)
    .where("lease_request", "=", "if_idle"),
);

const openRequests = prepared((db, p: { owner: string }) =>
  db
    .selectFrom("upload")
    .select(["handle", "fence", "lease_request as kind"])
    .where("lease_owner", "=", p.owner)
    .where("lease_request", "is not", null)
    .where("lease_active", "=", (eb) => eb.lit(1))
    .$narrowType<{ kind: LeaseRequestKind }>()
    .limit((eb) => eb.lit(maxRequests)),
);

export function* requestLease(
  context: OpContext,
  handle: string,
  fence: number,
  kind: LeaseRequestKind,
): Op<boolean> {
  const row = yield* first(uploadByHandle(context, { handle }));
  if (row === null || row.fence !== fence || row.lease_active === 0 || row.status !== "receiving")
    return false;
  // The stronger request stays: whoever asked for the end waits for it.
  if (row.lease_request !== "end" && row.lease_request !== kind) {
    yield* run(setRequest(context, { id: row.id, request: kind }));
  }
  return true;
}

export function* refuseLease(context: OpContext, handle: string, fence: number): Op<void> {
  yield* run(refuse(context, { handle, fence }));
}

export function* leaseRequests(context: OpContext, owner: string): Op<LeaseRequest[]> {
  return [...(yield* rows(openRequests(context, { owner })))];
}
