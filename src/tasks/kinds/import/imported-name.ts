/** The name and the type of a file, from what its source says of it. */
import { parse } from "content-disposition";
import { plainName } from "../plain-name.ts";

/** RFC 6266, else the last part of the path, else the host. */
export function answeredFilename(disposition: string | undefined, url: URL): string {
  return fromDisposition(disposition) ?? fromPath(url) ?? plainName(url.hostname) ?? "file";
}

function fromDisposition(disposition: string | undefined): string | null {
  if (disposition === undefined) return null;
  try {
    return plainName(parse(disposition).parameters.filename ?? "");
  } catch {
    return null;
  }
}

function fromPath(url: URL): string | null {
  const last = /[^/]*$/.exec(url.pathname)?.[0] ?? "";
  try {
    return plainName(decodeURIComponent(last));
  } catch {
    return plainName(last);
  }
}

/** A media type as it came, if it is one (RFC 9110 section 8.3.1). */
export function answeredContentType(text: string | undefined): string | null {
  if (text === undefined || text.length > 255) return null;
  return /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:[ \t]*;[\x20-\x7e]*)?$/.test(text) ? text : null;
}
