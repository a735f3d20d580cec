/** The URL of an import, as far as it can be judged without looking anything up. */
import { fileURLToPath } from "node:url";
import { TransferError } from "../../../errors.ts";

const maxUrlLength = 8_192;

/** @throws TransferError `invalid_param`, `url_not_allowed`. */
export function parseImportUrl(text: string): URL {
  if (text.length > maxUrlLength || !URL.canParse(text)) {
    throw new TransferError("invalid_param", "url: it must be a URL such as https://example.com/data.csv.", {
      param: "url",
    });
  }
  const url = new URL(text);
  if (url.protocol !== "https:" && url.protocol !== "http:" && url.protocol !== "file:") {
    throw urlNotAllowed(
      `URLs of the kind ${url.protocol.slice(0, 32)} cannot be imported.`,
      "Use an https, http or file URL.",
    );
  }
  // It would be kept with the task and shown to whoever may see it.
  if (url.username !== "" || url.password !== "") {
    throw new TransferError("invalid_param", "url: it must not have a user name or a password in it.", {
      param: "url",
      recoveryHint:
        "Use a URL that needs no login, such as a signed one, or upload the file with upload_create.",
      retryable: false,
    });
  }
  if (url.protocol === "file:") filePath(url);
  url.hash = "";
  return url;
}

/** @throws TransferError `invalid_param` where the URL is no path of this machine. */
export function filePath(url: URL): string {
  try {
    const path = fileURLToPath(url);
    if (!path.includes("\0") && url.host === "") return path;
  } catch {
    // Said below.
  }
  throw new TransferError("invalid_param", "url: it is no path on the server's machine.", {
    param: "url",
    recoveryHint: "Write file URLs as file:///folder/name.",
  });
}

export function urlNotAllowed(message: string, recoveryHint?: string): TransferError {
  return new TransferError("url_not_allowed", message, recoveryHint === undefined ? {} : { recoveryHint });
}
