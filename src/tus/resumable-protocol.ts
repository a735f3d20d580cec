/**
 * What is fixed about Resumable Uploads for HTTP (draft-ietf-httpbis-resumable-upload-12) here: its fields, its limits, and the version
 * that drafts tell apart. Sections are those of the draft.
 */
import type { Transfer, TransferLimits } from "../transfer/engine.ts";
import type { Exchange } from "./exchange.ts";
import { booleanItem, countItem } from "./structured-fields.ts";

/** Clients of another draft get no interim responses; all else is the same for them. */
export const interopVersion = 9;
export const partialMediaType = "application/partial-upload";
/** The largest integer of a structured field (RFC 9651 section 3.3.1). */
const maxInteger = 999_999_999_999_999;

/** `Upload-Complete`; another value than a boolean counts as none (section "Completeness"). */
export function readUploadComplete(exchange: Exchange): boolean | null {
  return booleanItem(exchange.header("upload-complete"));
}

export function readCount(exchange: Exchange, field: "upload-offset" | "upload-length"): number | null {
  return countItem(exchange.header(field));
}

/** True where the client speaks the same draft. */
export function speaksInteropVersion(exchange: Exchange): boolean {
  return countItem(exchange.header("upload-draft-interop-version")) === interopVersion;
}

/** True where `Content-Type` is the one of appends; parameters and case do not matter. */
export function isPartialMedia(exchange: Exchange): boolean {
  const [type = ""] = (exchange.header("content-type") ?? "").split(";");
  return type.trim().toLowerCase() === partialMediaType;
}

/** `Upload-Limit` (section "Limits"): of one upload, or of one that may be created. `min-size=0` says that there is no limit. */
export function limitHeader(limits: TransferLimits, transfer: Transfer | null): Record<string, string> {
  const { maxFileBytes, uploadTtlMs } = limits;
  const lifeMs = transfer === null ? uploadTtlMs : lifeOf(transfer, uploadTtlMs);
  const members = [
    ...(maxFileBytes <= maxInteger ? [`max-size=${maxFileBytes}`] : []),
    ...(lifeMs === null ? [] : [`max-age=${Math.max(0, Math.floor(lifeMs / 1000))}`]),
  ];
  return { "Upload-Limit": members.length === 0 ? "min-size=0" : members.join(", ") };
}

/** How long its URL answers from now on: a complete upload's for a while after completion, whatever the life of the file. */
function lifeOf(transfer: Transfer, uploadTtlMs: number): number | null {
  const { completedAt, expiresAt } = transfer;
  const ends = [
    ...(completedAt === null ? [] : [completedAt.getTime() + uploadTtlMs]),
    ...(expiresAt === null ? [] : [expiresAt.getTime()]),
  ];
  return ends.length === 0 ? null : Math.min(...ends) - Date.now();
}

/** Whether the answer is what the upload has come to (section "Completeness"): the file, or that it is not the one announced. */
export function isComplete(transfer: Transfer): boolean {
  return transfer.status === "complete" || transfer.status === "mismatch";
}

export function completeHeader(complete: boolean): Record<string, string> {
  return { "Upload-Complete": complete ? "?1" : "?0" };
}
