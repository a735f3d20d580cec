/** A file behind an http or https URL: redirects, ranges, validators (RFC 9110 sections 8.8, 13.1.5, 14 and 15.4). */
import type { IncomingMessage } from "node:http";
import { TransferError } from "../../../errors.ts";
import { parseImportUrl, urlNotAllowed } from "./import-url.ts";
import { answeredContentType, answeredFilename } from "./imported-name.ts";
import { pinnedGet, type RequestParts } from "./pinned-request.ts";
import { type Opening, type OpenSource, type Source, type SourceFacts, SourceTrouble } from "./source.ts";

const maxRedirects = 5;
const longestRetryAfterMs = 60_000;

/** Answers that may be others in a while. */
const passing = new Set([408, 425, 429, 500, 502, 503, 504]);

export function httpSource(url: URL, parts: RequestParts): Source {
  return {
    label: url.host,
    async open(from, signal) {
      const response = await follow(url, rangeHeaders(from), parts, signal);
      try {
        const opening = from === null ? fresh(url, response) : resumed(url, response, from);
        if (opening.kind === "at_end" || opening.source === null) response.destroy();
        return opening;
      } catch (error) {
        response.destroy();
        throw error;
      }
    },
  };
}

function rangeHeaders(from: Parameters<Source["open"]>[0]): Record<string, string> {
  // What is stored is what was sent: nothing is to be compressed on the way.
  const headers = { accept: "*/*", "accept-encoding": "identity", "user-agent": "longshore" };
  if (from === null) return headers;
  const { offset, facts } = from;
  return {
    ...headers,
    range: `bytes=${offset}-`,
    ...(facts.validator !== null && { "if-range": facts.validator }),
  };
}

/** Every address on the way is looked up and checked anew. */
async function follow(
  first: URL,
  headers: Readonly<Record<string, string>>,
  parts: RequestParts,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  let url = first;
  for (let hop = 0; ; hop += 1) {
    const response = await pinnedGet(url, headers, parts, signal);
    const { statusCode = 0 } = response;
    if (![301, 302, 303, 307, 308].includes(statusCode)) return response;
    response.destroy();
    if (hop === maxRedirects) throw failed(`The source redirects more than ${maxRedirects} times.`);
    url = redirected(url, response.headers.location);
  }
}

function redirected(from: URL, location: string | undefined): URL {
  if (location === undefined || !URL.canParse(location, from.href))
    throw failed("The source redirects to no URL.");
  const to = parseImportUrl(new URL(location, from).href);
  if (to.protocol === "file:") throw urlNotAllowed("The source redirects to a file URL.");
  if (from.protocol === "https:" && to.protocol === "http:") {
    throw urlNotAllowed(
      "The source redirects from https to http, where anybody on the way could change the file.",
      "Use the http URL itself if that does not matter.",
    );
  }
  return to;
}

function fresh(url: URL, response: IncomingMessage): Opening {
  if (response.statusCode !== 200) throw refusedWith(response);
  return { kind: "open", source: opened(url, response, 0) };
}

function resumed(
  url: URL,
  response: IncomingMessage,
  { offset, facts }: { offset: number; facts: SourceFacts },
): Opening {
  switch (response.statusCode) {
    case 206: {
      const { headers } = response;
      const range = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers["content-range"] ?? "");
      const isHere = range !== null && Number(range[1]) === offset;
      const isSize = facts.sizeBytes === null || range?.[2] === "*" || Number(range?.[2]) === facts.sizeBytes;
      const isSame =
        !isStrong(facts.validator) || headers.etag === undefined || headers.etag === facts.validator;
      if (!isHere || !isSize || !isSame) return { kind: "changed", source: null };
      return { kind: "open", source: opened(url, response, offset) };
    }
    case 416: {
      const end = /^bytes \*\/(\d+)$/.exec(response.headers["content-range"] ?? "")?.[1];
      const isEnd = Number(end) === offset && (facts.sizeBytes === null || facts.sizeBytes === offset);
      return isEnd ? { kind: "at_end" } : { kind: "changed", source: null };
    }
    case 200:
      return { kind: "changed", source: opened(url, response, 0) };
    case 412:
      return { kind: "changed", source: null };
    default:
      throw refusedWith(response);
  }
}

function opened(url: URL, response: IncomingMessage, start: number): OpenSource {
  const { headers } = response;
  const length = /^\d+$/.test(headers["content-length"] ?? "") ? Number(headers["content-length"]) : null;
  return {
    facts: {
      filename: answeredFilename(headers["content-disposition"], url),
      contentType: answeredContentType(headers["content-type"]),
      sizeBytes: length === null ? null : start + length,
      validator: validatorOf(response),
    },
    start,
    stream: response,
    isSame: async () => true,
    close: () => void response.destroy(),
  };
}

/** What `If-Range` may carry: a strong entity tag, or a date old enough that no second change hides behind it. */
function validatorOf({ headers }: IncomingMessage): string | null {
  if (isStrong(headers.etag ?? null)) return headers.etag ?? null;
  if (headers.etag !== undefined) return null;
  const changed = Date.parse(headers["last-modified"] ?? "");
  const now = Date.parse(headers.date ?? "");
  return now - changed >= 1_000 ? (headers["last-modified"] ?? null) : null;
}

function isStrong(validator: string | null): boolean {
  return validator?.startsWith('"') === true;
}

function refusedWith(response: IncomingMessage): Error {
  const { statusCode = 0, statusMessage = "" } = response;
  const answer =
    `The source answered ${statusCode} ${statusMessage.replace(/[^\x20-\x7e]/g, "").slice(0, 60)}`.trim();
  if (passing.has(statusCode))
    return new SourceTrouble(`${answer}.`, retryAfterMs(response.headers["retry-after"]));
  return failed(`${answer}.`);
}

function retryAfterMs(text: string | undefined): number {
  const ms = /^\d+$/.test(text ?? "") ? Number(text) * 1_000 : Date.parse(text ?? "") - Date.now();
  return ms > 0 ? Math.min(ms, longestRetryAfterMs) : 0;
}

function failed(message: string): TransferError {
  return new TransferError("task_failed", message, {
    recoveryHint:
      "Open the URL yourself to see what it answers, then call file_import with one that gives the file.",
  });
}
