/** `Upload-Concat` (tus 1.0.0, Concatenation): a part of a file, or the file made of its parts. */
import { TransferError } from "../errors.ts";
import type { Links } from "../transfer/links.ts";

export type UploadConcat =
  | { readonly kind: "partial" }
  /** Tickets in the order of the bytes; what is none is kept, and will be found by nobody. */
  | { readonly kind: "final"; readonly tickets: readonly string[] };

/** More parts than this in one file are refused. The limit on header fields is met before where URLs are long. */
const maxPartials = 1_000;
const field = "Upload-Concat";

function refuse(message: string): TransferError {
  return new TransferError("invalid_param", message, {
    param: field,
    recoveryHint:
      "Send 'Upload-Concat: partial', or 'Upload-Concat: final;URL URL …' with the URLs of the partial uploads in order.",
  });
}

/**
 * The ticket in an upload URL, absolute or relative to `/files/`. Host and path before `/files/` do not matter: behind a proxy they may be
 * others than ours, and the ticket alone is the authority.
 */
function ticketIn(url: string, links: Links): string {
  const base = `${links.publicUrl}/files/`;
  if (!URL.canParse(url, base)) throw refuse("Upload-Concat lists something that is no URL.");
  const segments = new URL(url, base).pathname.split("/");
  return segments[segments.lastIndexOf("files", segments.length - 2) + 1] ?? "";
}

/** Throws `invalid_param` for everything that is neither. */
export function parseUploadConcat(text: string, links: Links): UploadConcat {
  if (text === "partial") return { kind: "partial" };
  const [, list] = /^final;(.*)$/s.exec(text) ?? [];
  if (list === undefined) throw refuse("Upload-Concat must be 'partial' or 'final;' with a list of URLs.");
  const urls = list.split(/[ \t]+/).filter((url) => url !== "");
  if (urls.length === 0) throw refuse("A final upload needs at least one partial upload.");
  if (urls.length > maxPartials)
    throw refuse(`A final upload can be made of at most ${maxPartials} partial uploads.`);
  const tickets = urls.map((url) => ticketIn(url, links));
  if (new Set(tickets).size < tickets.length) throw refuse("Upload-Concat lists the same upload twice.");
  return { kind: "final", tickets };
}
