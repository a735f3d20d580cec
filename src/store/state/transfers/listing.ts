/** Uploads in pages: of one principal in the order of creation, and of all in the order of handles. */
import { sql } from "kysely";
import type { UploadRecord } from "../../../transfer/records.ts";
import type { ListQuery, TransferStatusFilter } from "../../../transfer/state-store.ts";
import { type Op, type OpContext, prepared, rows } from "../operation.ts";
import { toUpload, type UploadRow } from "../schema.ts";

const completePage = prepared((db, p: { after: string; limit: number }) =>
  db
    .selectFrom("upload")
    .selectAll()
    .where("handle", ">", p.after)
    .where("status", "=", sql.lit("complete"))
    .orderBy("handle")
    .limit(p.limit),
);

export function* completeUploads(
  context: OpContext,
  after: string | null,
  limit: number,
): Op<UploadRecord[]> {
  const page = yield* rows(completePage(context, { after: after ?? "", limit }));
  return page.map(toUpload);
}

interface PageValues {
  readonly principal: string;
  readonly now: number;
  readonly createdAt: number;
  readonly handle: string;
  readonly limit: number;
}

const pageOfStatus = prepared((db, p: PageValues & { readonly status: string }) =>
  db
    .selectFrom("upload")
    .selectAll()
    .where("principal", "=", p.principal)
    .where("status", "=", sql<UploadRow["status"]>`${p.status}`)
    .where("concat", "<>", sql.lit("partial"))
    .where((eb) => eb(eb.refTuple("created_at", "handle"), ">", eb.tuple(p.createdAt, p.handle)))
    .orderBy("created_at")
    .orderBy("handle")
    .limit(p.limit),
);

const livePageOfStatus = prepared((db, p: PageValues & { readonly status: string }) =>
  db
    .selectFrom("upload")
    .selectAll()
    .where("principal", "=", p.principal)
    .where("status", "=", sql<UploadRow["status"]>`${p.status}`)
    .where("concat", "<>", sql.lit("partial"))
    .where((eb) => eb(eb.refTuple("created_at", "handle"), ">", eb.tuple(p.createdAt, p.handle)))
    .where((eb) =>
      eb.or([eb("expires_at", "is", null), eb("expires_at", ">", p.now), eb("lease_active", "=", eb.lit(1))]),
    )
    .orderBy("created_at")
    .orderBy("handle")
    .limit(p.limit),
);

/**
 * Due records are few, since they are swept: they are found by the indices of expiry and sorted. (Left to itself a
 * planner would walk all of the principal's records in the order asked for.)
 */
const duePage = prepared((db, p: PageValues) =>
  db
    .with(
      (cte) => cte("due").materialized(),
      (cte) =>
        cte
          .selectFrom("upload")
          .selectAll()
          .where("expires_at", "is not", null)
          .where("expires_at", "<=", p.now)
          .where("marked_at", "is", null)
          .unionAll(
            cte
              .selectFrom("upload")
              .selectAll()
              .where("marked_at", "is not", null)
              .where("expires_at", "<=", p.now),
          ),
    )
    .selectFrom("due")
    .selectAll()
    .where("principal", "=", p.principal)
    .where("lease_active", "=", (eb) => eb.lit(0))
    .where("concat", "<>", sql.lit("partial"))
    .where((eb) => eb(eb.refTuple("created_at", "handle"), ">", eb.tuple(p.createdAt, p.handle)))
    .orderBy("created_at")
    .orderBy("handle")
    .limit(p.limit),
);

const everyStatus: readonly Exclude<TransferStatusFilter, "expired">[] = [
  "receiving",
  "verifying",
  "complete",
  "mismatch",
];

export function* listUploads(
  context: OpContext,
  query: ListQuery,
): Op<{ uploads: UploadRecord[]; now: number }> {
  const { now } = context;
  const { principal, status, limit, after } = query;
  const values = { principal, now, limit, createdAt: after?.createdAt ?? -1, handle: after?.handle ?? "" };
  let page: readonly UploadRow[];
  if (status === "expired") {
    page = yield* rows(duePage(context, values));
  } else if (status !== null) {
    page = yield* rows(livePageOfStatus(context, { ...values, status }));
  } else {
    // One index serves both: the unfiltered list is the first rows of each status, merged.
    const merged: UploadRow[] = [];
    for (const one of everyStatus)
      merged.push(...(yield* rows(pageOfStatus(context, { ...values, status: one }))));
    merged.sort((a, b) => a.created_at - b.created_at || (a.handle < b.handle ? -1 : 1));
    page = merged.slice(0, limit);
  }
  return { uploads: page.map(toUpload), now };
}
