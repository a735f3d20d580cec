/**
 * Cross-origin use (the Fetch standard's CORS protocol) of ticket URLs. Any origin may use them, since the secret in the URL is
 * all the authority there is; credentials are never allowed, so nothing of a browser's own login goes along.
 */

const methods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/** Named one by one: a wildcard covers neither `Authorization` nor older browsers. */
const requestHeaders = [
  "Authorization",
  "Content-Type",
  "Content-Range",
  "Content-Digest",
  "Content-Disposition",
  "Repr-Digest",
  "Range",
  "If-Range",
  "Tus-Resumable",
  "Upload-Length",
  "Upload-Offset",
  "Upload-Defer-Length",
  "Upload-Metadata",
  "Upload-Concat",
  "Upload-Checksum",
  "Upload-Complete",
  "Upload-Draft-Interop-Version",
  "X-Request-ID",
  "X-Requested-With",
  "X-HTTP-Method-Override",
].join(", ");

const exposedHeaders = [
  "Location",
  "Tus-Resumable",
  "Tus-Version",
  "Tus-Extension",
  "Tus-Max-Size",
  "Tus-Checksum-Algorithm",
  "Upload-Offset",
  "Upload-Length",
  "Upload-Defer-Length",
  "Upload-Metadata",
  "Upload-Expires",
  "Upload-Concat",
  "Upload-Complete",
  "Upload-Limit",
  "Upload-Draft-Interop-Version",
  "Retry-After",
  "ETag",
  "Content-Range",
  "Accept-Ranges",
  "Content-Disposition",
  "Repr-Digest",
  "Longshore-Handle",
  "Longshore-Status",
].join(", ");

/** On every answer, errors included. The same for every origin, so no cache needs to tell them apart. */
export const corsHeaders: Readonly<Record<string, string>> = Object.freeze({
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers": exposedHeaders,
});

/** On answers to OPTIONS. */
export const preflightHeaders: Readonly<Record<string, string>> = Object.freeze({
  "Access-Control-Allow-Methods": methods,
  "Access-Control-Allow-Headers": requestHeaders,
  "Access-Control-Max-Age": "86400",
});
