/** An error of the catalogue as the answer of a route that belongs to the server itself. */
import { type TransferError, toErrorHeaders, toProblem } from "../errors.ts";

export function problemResponse(error: TransferError, requestId?: string): Response {
  return new Response(JSON.stringify(toProblem(error, requestId)), {
    status: error.status,
    headers: {
      ...toErrorHeaders(error),
      "Content-Type": "application/problem+json",
      "Cache-Control": "no-store",
      ...(requestId !== undefined && { "X-Request-ID": requestId }),
    },
  });
}
