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
  /** The same by this program, which resumes by itself and compares the digests. */
  cliUpload(ticket: string, filename: string | null): string;
  cliDownload(ticket: string, filename: string | null): string;
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
  const base = (filename ?? "").replaceAll(/[\u0000-\u001f\u007f/\\]/g, "_");
  return base === "" || base === "." || base === ".." ? "file" : base.replace(/^-/, "./-");
}

/** At most 200 bytes, whole characters only: file systems take 255. */
function shortened(name: string): string {
  const bytes = Buffer.from(name);
  let end = Math.min(200, bytes.length);
  while (end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString("utf8", 0, end);
}

export function createLinks(publicUrl: string): Links {
  const base = publicUrl.replace(/\/+$/, "");
  const upload = (ticket: string) => `${base}/files/${ticket}`;
  const download = (ticket: string, filename: string | null) =>
    `${base}/d/${ticket}/${encodeURIComponent(shortened(localName(filename)).replace(/^\.\//, ""))}`;
  return {
    publicUrl: base,
    upload,
    download,
    allowHost: new URL(base).host,
    curlUpload(ticket, filename, offset) {
      const resume = offset > 0 ? `-C ${offset} ` : "";
      const name = localName(filename);
      // curl takes [1-3] and {a,b} behind -T for a pattern, and would send other files than this one.
      const literally = /[[\]{}]/.test(name) ? "-g " : "";
      return `curl -f ${literally}${resume}-T ${shellQuoted(name)} ${upload(ticket)}`;
    },
    curlDownload(ticket, filename) {
      return `curl -f -o ${shellQuoted(shortened(localName(filename)))} ${shellQuoted(download(ticket, filename))}`;
    },
    cliUpload(ticket, filename) {
      return `longshore put ${shellQuoted(localName(filename))} ${upload(ticket)}`;
    },
    cliDownload(ticket, filename) {
      return `longshore get ${shellQuoted(download(ticket, filename))} ${shellQuoted(shortened(localName(filename)))}`;
    },
  };
}
