/** Arguments that describe a file to be. */
import { TransferError } from "../errors.ts";
import { lastSegment } from "./handle-argument.ts";

/** Models pass the path that they know; the folders are theirs alone and mean nothing here. */
export function plainFilename(text: string): string {
  const name = lastSegment(text);
  if (name === "" || name === "." || name === "..") {
    throw new TransferError("invalid_param", "filename: it must end in the name of a file.", {
      param: "filename",
    });
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
  if (name.length > 255 || /[\u0000-\u001f\u007f]/.test(name) || !name.isWellFormed()) {
    throw new TransferError(
      "invalid_param",
      "filename: at most 255 characters, none of them a control character.",
      {
        param: "filename",
      },
    );
  }
  return name;
}

export function plainSha256(text: string): string {
  if (/^[0-9a-f]{64}$/i.test(text)) return text.toLowerCase();
  throw new TransferError("invalid_param", "sha256: it must be 64 hexadecimal digits.", { param: "sha256" });
}
