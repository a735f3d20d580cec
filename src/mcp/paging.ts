/** What tools that list in pages have in common: their arguments, and how a page is told. */
import * as z from "zod";

/** Rows of a page at most: more would fill a conversation. */
export const maxRows = 30;

export const pageInput = {
  limit: z
    .int()
    .min(1)
    .max(maxRows)
    .optional()
    .describe(`Rows at most, 1 to ${maxRows}; default ${maxRows}.`),
  cursor: z.string().min(1).max(1024).optional().describe("nextCursor of the page before."),
};

/** The query of the engine behind the tool. */
export function pageQuery<Status>(given: {
  status?: Status | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
}): { status: Status | null; limit: number; cursor: string | null } {
  return { status: given.status ?? null, limit: given.limit ?? maxRows, cursor: given.cursor ?? null };
}

/** @param says `none`: there are no rows; `use`: what the rows are good for. */
export function pageFacts<Key extends string, Row>(
  tool: string,
  key: Key,
  page: { readonly rows: readonly Row[]; readonly nextCursor: string | null },
  says: { readonly none: string; readonly use: string },
) {
  const { rows, nextCursor } = page;
  const more =
    nextCursor === null ? "" : ` For more rows call ${tool} with cursor ${JSON.stringify(nextCursor)}.`;
  return {
    status: "listed",
    [key]: rows,
    ...(nextCursor !== null && { nextCursor }),
    nextStep: rows.length === 0 ? says.none : says.use + more,
  };
}
