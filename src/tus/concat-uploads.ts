/** `POST /files` with `Upload-Concat: final;…`: tus Concatenation. Parts must be finished: `concatenation-unfinished` is not offered. */
import { TransferError } from "../errors.ts";
import { createdHeaders, failedAnswer, orFailedAnswer } from "./created-answer.ts";
import { type Door, digestPending, isDigestPending } from "./door.ts";
import type { Answer, Exchange } from "./exchange.ts";
import { bodyLengthOf } from "./request-body.ts";
import { offsetHeader } from "./transfer-headers.ts";
import { describedBy } from "./upload-metadata.ts";

/** "The Client MUST NOT include the Upload-Length header in the final upload creation", nor has it bytes of its own. */
function checkFinal(exchange: Exchange): void {
  for (const name of ["Upload-Length", "Upload-Defer-Length"]) {
    if (exchange.header(name) === null) continue;
    throw new TransferError(
      "invalid_param",
      `A final upload is created without ${name}: its parts tell its size.`,
      {
        param: name,
        recoveryHint: `Leave ${name} out.`,
      },
    );
  }
  const length = bodyLengthOf(exchange);
  if (length.kind === "chunked" || (length.kind === "known" && length.bytes > 0)) {
    throw new TransferError("final_upload", "A final upload is created without a body.");
  }
}

export function concatUploads(
  exchange: Exchange,
  door: Door,
  principal: string,
  parts: { readonly uploadConcat: string; readonly tickets: readonly string[] },
): Promise<Answer> {
  checkFinal(exchange);
  return orFailedAnswer(exchange, door, async () => {
    const created = await door.engine.concatenate(principal, { ...describedBy(exchange), ...parts });
    const { transfer } = created;
    // The last request of this upload: 2xx may be taken for the word that the file is the one announced. The same request again
    // finds the same upload.
    if (isDigestPending(transfer)) return failedAnswer(digestPending(transfer), created, { exchange, door });
    return { status: 201, headers: { ...createdHeaders(created, door), ...offsetHeader(transfer) } };
  });
}
