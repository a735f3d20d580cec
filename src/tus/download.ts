/**
 * `GET` and `HEAD` on a download URL (RFC 9110 sections 13 to 15): whole, in ranges, conditional.
 *
 * What is stored came from anybody, so this origin never shows it: it is always an attachment, its type is not guessed, and a
 * page made of it would stand in an opaque origin without scripts.
 */
import { create as contentDisposition } from "content-disposition";
import { TransferError } from "../errors.ts";
import type { OpenFile } from "../transfer/engine.ts";
import { parseRange } from "./byte-ranges.ts";
import { type Door, ticketOf } from "./door.ts";
import type { Answer, Exchange } from "./exchange.ts";
import { multipartBody } from "./multipart-ranges.ts";
import { judgePreconditions, rangeCounts, type Validators } from "./preconditions.ts";
import { transferHeaders } from "./transfer-headers.ts";

/** RFC 6266 with the extended form of RFC 8187 for what ASCII cannot say. No folders, no control characters. */
export function attachment(filename: string | null): string {
  if (filename === null) return "attachment";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is taken out here
  const name = filename.toWellFormed().replaceAll(/[\u0000-\u001f\u007f-\u009f/\\]/g, "_");
  // Characters outside of the basic plane are two code units: `u` makes one underscore of each.
  const fallback = name.replaceAll(/[^\x20-\x7e]/gu, "_").replaceAll(/%(?=[0-9A-Fa-f]{2})/g, "_");
  return contentDisposition(name, { fallback });
}

function headersFor(file: OpenFile, { etag, lastModified }: Validators): Record<string, string> {
  return {
    ETag: etag,
    "Last-Modified": lastModified.toUTCString(),
    "Accept-Ranges": "bytes",
    // The URL is a secret with an end: no shared cache may answer for it, and each use is asked for again. What goes out is
    // what the digest and the ranges are of, so nothing on the way may compress it.
    "Cache-Control": "private, no-cache, no-transform",
    "Content-Disposition": attachment(file.transfer.filename),
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "cross-origin",
    ...transferHeaders(file.transfer),
  };
}

/** Up to here a run is read in one piece: streams cost more than the reading. A reader who takes nothing holds this much. */
const shortBytes = 256 << 10;

export async function downloadFile(exchange: Exchange, door: Door): Promise<Answer> {
  const file = await door.engine.openDownload(ticketOf(exchange));
  const { sizeBytes, sha256, completedAt, createdAt } = file.transfer;
  const validators = { etag: `"${sha256}"`, lastModified: completedAt ?? createdAt };
  const headers = headersFor(file, validators);
  const contentType = file.transfer.contentType ?? "application/octet-stream";
  switch (judgePreconditions(exchange.header, validators)) {
    case "failed":
      throw new TransferError("precondition_failed", "The file is not the one that the condition names.");
    case "not_modified":
      return { status: 304, headers };
    case "go_on":
      break;
  }
  const range = exchange.header("range");
  const ranges =
    exchange.method === "GET" && range !== null && rangeCounts(exchange.header, validators)
      ? parseRange(range, sizeBytes)
      : null;
  if (ranges === "unsatisfiable") {
    throw new TransferError("range_not_satisfiable", `The file has ${sizeBytes} bytes.`, { sizeBytes });
  }
  const [only, ...more] = ranges ?? [{ start: 0, end: sizeBytes }];
  if (only !== undefined && more.length === 0) {
    return {
      status: ranges === null ? 200 : 206,
      headers: {
        ...headers,
        "Content-Type": contentType,
        "Content-Length": String(only.end - only.start),
        ...(ranges !== null && { "Content-Range": `bytes ${only.start}-${only.end - 1}/${sizeBytes}` }),
      },
      ...(only.end - only.start <= shortBytes
        ? { bytes: () => file.bytes(only.start, only.end) }
        : { content: () => file.stream(only.start, only.end) }),
    };
  }
  const body = multipartBody(ranges ?? [], {
    sizeBytes,
    contentType,
    stream: (start, end) => file.stream(start, end),
  });
  return {
    status: 206,
    headers: { ...headers, "Content-Type": body.contentType, "Content-Length": String(body.lengthBytes) },
    content: body.open,
  };
}
