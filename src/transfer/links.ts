/** The URLs and command lines handed out for tickets: one place, so that every door tells the same. */

export interface Links {
  /** Base of every URL, without a slash at the end. */
  readonly publicUrl: string;
  /** tus and plain PUT: `/files/{ticket}`. */
  upload(ticket: string): string;
  /** `/d/{ticket}/{filename}`. */
  download(ticket: string, filename: string | null): string;
  /** Host (with port) that an egress allowlist must permit. */
  readonly allowHost: string;
  /** A line to paste: uploads `filename` from the working folder, from `offset` on. */
  curlUpload(ticket: string, filename: string | null, offset: number): string;
  curlDownload(ticket: string, filename: string | null): string;
}

/** Quoted for a POSIX shell. */
function shellQuoted(word: string): string {
  return /^[A-Za-z0-9_./:@%+=,-]+$/.test(word) && !word.startsWith("-")
    ? word
    : `'${word.replaceAll("'", "'\\''")}'`;
}

/** A name that is safe to paste as a file in the working folder: no folders, no control characters, never an option. */
function localName(filename: string | null): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is taken out here
  const base = (filename ?? "").replaceAll(/[\u0000-\u001f\u007f/\\]/g, "_").slice(0, 200);
  return base === "" || base === "." || base === ".." ? "file" : base.replace(/^-/, "./-");
}

export function createLinks(publicUrl: string): Links {
  const base = publicUrl.replace(/\/+$/, "");
  const upload = (ticket: string) => `${base}/files/${ticket}`;
  const download = (ticket: string, filename: string | null) =>
    `${base}/d/${ticket}/${encodeURIComponent(localName(filename).replace(/^\.\//, ""))}`;
  return {
    publicUrl: base,
    upload,
    download,
    allowHost: new URL(base).host,
    curlUpload(ticket, filename, offset) {
      const resume = offset > 0 ? `-C ${offset} ` : "";
      return `curl -f ${resume}-T ${shellQuoted(localName(filename))} ${upload(ticket)}`;
    },
    curlDownload(ticket, filename) {
      return `curl -f -o ${shellQuoted(localName(filename))} ${shellQuoted(download(ticket, filename))}`;
    },
  };
}
