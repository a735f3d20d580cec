/** Creates uploads with `POST /files`, for those who have a server's URL and no upload URL yet. */
import { Patience, type RetryOptions, send } from "./retry.ts";
import { failureOf, TransferFailure } from "./transfer-failure.ts";

/**
 * What {@link createUpload} tells the server of the file.
 *
 * @example
 * const options: NewUpload = { filename: "big.bin", sizeBytes: 10e9, key: process.env.LONGSHORE_KEY };
 */
export interface NewUpload extends RetryOptions {
  readonly filename?: string;
  readonly contentType?: string;
  /** Left out: known at the end only. */
  readonly sizeBytes?: number;
  /** Lower-case hex, where it is known beforehand: the server refuses other bytes then. */
  readonly sha256?: string;
  /** API key or access token, where the server asks for one. */
  readonly key?: string;
}

/**
 * Creates an upload on a server and returns its URL, which is a secret: whoever has it can write to this upload.
 *
 * @param base the server's base URL.
 * @throws TransferFailure
 * @example
 * const url = await createUpload("http://127.0.0.1:8484", { filename: file.name, sizeBytes: file.size });
 * await upload(url, file);
 */
export async function createUpload(base: string | URL, options: NewUpload = {}): Promise<string> {
  const { filename, contentType, sizeBytes, sha256, key } = options;
  const endpoint = `${String(base).replace(/\/+$/, "")}/files`;
  const metadata = Object.entries({ filename, filetype: contentType, sha256 }).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [`${name} ${base64(value)}`],
  );
  const headers = {
    "Tus-Resumable": "1.0.0",
    ...(sizeBytes === undefined ? { "Upload-Defer-Length": "1" } : { "Upload-Length": String(sizeBytes) }),
    ...(metadata.length > 0 && { "Upload-Metadata": metadata.join(",") }),
    ...(key !== undefined && { Authorization: `Bearer ${key}` }),
  };
  // An answer that is lost leaves an empty upload behind, which expires: so no answer is worth another try.
  const response = await createPatiently(endpoint, headers, options);
  const location = response.headers.get("location");
  if (location === null)
    throw new TransferFailure("not_longshore", `There is no upload server at ${endpoint}.`, {
      status: response.status,
    });
  return new URL(location, endpoint).href;
}

async function createPatiently(
  endpoint: string,
  headers: Record<string, string>,
  options: NewUpload,
): Promise<Response> {
  const patience = new Patience(options);
  for (;;) {
    try {
      const response = await send(endpoint, { method: "POST", headers }, options);
      if (response.ok) return response;
      const failure = await failureOf(response);
      if (failure.retryAfterMs === null) throw failure;
      await patience.afterFailure(failure);
    } catch (error) {
      if (!(error instanceof TransferFailure) || error.code !== "network") throw error;
      await patience.afterFailure(noAnswer(error, endpoint));
    }
  }
}

/** There is no upload yet that one could go on with. */
function noAnswer({ message, cause }: TransferFailure, endpoint: string): TransferFailure {
  return new TransferFailure("network", message, {
    retryable: true,
    recoveryHint: `Check that a server answers at ${endpoint.replace(/\/files$/, "")}, then try again.`,
    cause,
  });
}

function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
