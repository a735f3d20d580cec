/** Names of files as they come from elsewhere, made fit to be names here. */

/** What file systems take for one name. */
const maxBytes = 255;

/** The part after the last slash or backslash, without control characters; null where nothing is left. */
export function plainName(text: string): string | null {
  const last = /[^/\\]*$/.exec(text)?.[0] ?? "";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
  const name = last.replace(/[\u0000-\u001f\u007f]/g, "").trim();
  if (name === "" || name === "." || name === "..") return null;
  return shortened(name).toWellFormed();
}

/** The end, with the extension, is kept: it says what the file is. `reserved` bytes are left for more. */
export function shortened(name: string, reserved = 0): string {
  const room = maxBytes - reserved;
  if (Buffer.byteLength(name) <= room) return name;
  const extension = /\.[^.]{1,20}$/.exec(name)?.[0] ?? "";
  const characters = [...name.slice(0, name.length - extension.length)];
  let left = room - Buffer.byteLength(extension);
  const kept = characters.findIndex((character) => {
    left -= Buffer.byteLength(character);
    return left < 0;
  });
  return characters.slice(0, Math.max(0, kept)).join("") + extension;
}
