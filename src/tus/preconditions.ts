/** Conditional requests (RFC 9110 section 13) for a file that never changes and has a strong validator. */

export interface Validators {
  /** Strong, with its quotes. */
  readonly etag: string;
  readonly lastModified: Date;
}

type Header = (name: string) => string | null;

/** Seconds since the epoch, as header fields have them; null where the text is no date. */
function seconds(text: string): number | null {
  const time = Date.parse(text);
  return Number.isNaN(time) ? null : Math.floor(time / 1000);
}

const entityTag = /(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g;

/** Whether the list names the tag. Strong comparison lets no weak tag match (section 8.8.3.2). */
function names(list: string, etag: string, comparison: "strong" | "weak"): boolean {
  if (list.trim() === "*") return true;
  return (list.match(entityTag) ?? []).some(
    (tag) => tag === etag || (comparison === "weak" && tag === `W/${etag}`),
  );
}

/** In the order of section 13.2.2; the range is judged apart, by `rangeCounts`. */
export function judgePreconditions(
  header: Header,
  validators: Validators,
): "go_on" | "not_modified" | "failed" {
  const modified = Math.floor(validators.lastModified.getTime() / 1000);
  const ifMatch = header("if-match");
  if (ifMatch !== null) {
    if (!names(ifMatch, validators.etag, "strong")) return "failed";
  } else {
    const since = seconds(header("if-unmodified-since") ?? "");
    if (since !== null && modified > since) return "failed";
  }
  const ifNoneMatch = header("if-none-match");
  if (ifNoneMatch !== null) {
    if (names(ifNoneMatch, validators.etag, "weak")) return "not_modified";
  } else {
    const since = seconds(header("if-modified-since") ?? "");
    if (since !== null && modified <= since) return "not_modified";
  }
  return "go_on";
}

/** Whether `Range` applies (section 13.1.5): no `If-Range`, or one that names exactly this file. */
export function rangeCounts(header: Header, validators: Validators): boolean {
  const ifRange = header("if-range");
  if (ifRange === null) return true;
  if (ifRange.startsWith('"')) return ifRange === validators.etag;
  if (ifRange.startsWith("W/")) return false;
  return seconds(ifRange) === Math.floor(validators.lastModified.getTime() / 1000);
}
