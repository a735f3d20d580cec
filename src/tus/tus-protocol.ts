/**
 * What is fixed about tus 1.0.0 here: version, extensions, which requests are tus at all, and what OPTIONS tells.
 * https://tus.io/protocols/resumable-upload
 */
import { TransferError } from "../errors.ts";
import type { TransferLimits } from "../transfer/engine.ts";
import type { Exchange } from "./exchange.ts";
import { checksumAlgorithms } from "./upload-checksum.ts";

export const tusVersion = "1.0.0";
/** Only what is built: clients choose by this list. */
const tusExtensions =
  "creation,creation-with-upload,creation-defer-length,termination,expiration,checksum,checksum-trailer,concatenation";
export const offsetMediaType = "application/offset+octet-stream";

export function tusOptionHeaders(limits: TransferLimits): Record<string, string> {
  return {
    "Tus-Resumable": tusVersion,
    "Tus-Version": tusVersion,
    "Tus-Extension": tusExtensions,
    "Tus-Max-Size": String(limits.maxFileBytes),
    "Tus-Checksum-Algorithm": checksumAlgorithms,
  };
}

/** True where `Content-Type` is the one of tus; parameters and case do not matter. */
export function isOffsetMedia(exchange: Exchange): boolean {
  const [type = ""] = (exchange.header("content-type") ?? "").split(";");
  return type.trim().toLowerCase() === offsetMediaType;
}

const overrides: ReadonlySet<string> = new Set(["POST", "PATCH", "DELETE", "HEAD"]);

/**
 * The method that is meant: `X-HTTP-Method-Override` counts on POST, for clients whose surroundings know no PATCH or DELETE.
 * Throws `invalid_param` for a method that it cannot stand for.
 */
export function effectiveMethod(method: string, override: string | null): string {
  if (method !== "POST" || override === null) return method;
  const meant = override.toUpperCase();
  if (!overrides.has(meant)) {
    throw new TransferError("invalid_param", "X-HTTP-Method-Override may be PATCH, DELETE or HEAD.", {
      param: "X-HTTP-Method-Override",
    });
  }
  return meant;
}
