/** Names of files as they come from elsewhere, made fit to be names here. */

const maxLength = 255;

/** The part after the last slash or backslash, without control characters; null where nothing is left. */
export function plainName(text: string): string | null {
  const last = /[^/\\]*$/.exec(text)?.[0] ?? "";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
  const name = last.replace(/[\u0000-\u001f\u007f]/g, "").trim();
  if (name === "" || name === "." || name === "..") return null;
  return shortened(name).toWellFormed();
}

/** The end, with the extension, is kept: it says what the file is. */
export function shortened(name: string): string {
  if (name.length <= maxLength) return name;
  const extension = /\.[^.]{1,20}$/.exec(name)?.[0] ?? "";
  return name.slice(0, maxLength - extension.length) + extension;
}
