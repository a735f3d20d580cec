/** Running sums of what each principal's records count, and the quota that is measured against them. */
import type { Quota } from "../../../transfer/state-store.ts";
import { first, type Op, type OpContext, prepared, run } from "../operation.ts";

/** As a float: sums of declared sizes may leave the range of exact integers, and a limit never does. */
const usageOf = prepared((db, p: { principal: string }) =>
  db
    .selectFrom("usage")
    .select((eb) => [eb.cast<number>("bytes", "double precision").as("bytes"), "files"])
    .where("principal", "=", p.principal),
);

const upsertUsage = prepared((db, p: { principal: string; bytes: number; files: number }) =>
  db
    .insertInto("usage")
    .values({ principal: p.principal, bytes: p.bytes, files: p.files })
    .onConflict((conflict) =>
      conflict.column("principal").doUpdateSet((eb) => ({
        bytes: eb("usage.bytes", "+", eb.ref("excluded.bytes")),
        files: eb("usage.files", "+", eb.ref("excluded.files")),
      })),
    ),
);

export function* usage(context: OpContext, principal: string): Op<{ bytes: number; files: number }> {
  return (yield* first(usageOf(context, { principal }))) ?? { bytes: 0, files: 0 };
}

export interface Exceeded {
  readonly kind: "quota";
  readonly limit: "bytes" | "files";
  readonly used: number;
}

/** Null where this much more fits. What takes nothing more is never refused, even over a limit that was lowered. */
export function* checkQuota(
  context: OpContext,
  principal: string,
  quota: Quota,
  more: { readonly bytes: number; readonly files: number },
): Op<Exceeded | null> {
  const { maxBytes, maxFiles } = quota;
  const growsFiles = maxFiles !== null && more.files > 0;
  const growsBytes = maxBytes !== null && more.bytes > 0;
  if (!growsFiles && !growsBytes) return null;
  const used = yield* usage(context, principal);
  if (growsFiles && used.files + more.files > maxFiles)
    return { kind: "quota", limit: "files", used: used.files };
  if (growsBytes && used.bytes + more.bytes > maxBytes)
    return { kind: "quota", limit: "bytes", used: used.bytes };
  return null;
}

export function* addUsage(context: OpContext, principal: string, bytes: number, files: number): Op<void> {
  if (bytes !== 0 || files !== 0) yield* run(upsertUsage(context, { principal, bytes, files }));
}
