/** One id for each request, the same wherever it is asked for: in the answer, in the log of the doors and in the server's own. */
import { requestIdFor } from "../tus/exchange.ts";

const given = new WeakMap<Request, string>();

/** The caller's `X-Request-ID` where it is harmless, else a random one. */
export function requestIdOf(request: Request): string {
  const known = given.get(request);
  if (known !== undefined) return known;
  const id = requestIdFor(request);
  given.set(request, id);
  return id;
}
