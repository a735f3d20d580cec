/**
 * Answers requests that never become one: header fields too large, bytes that are no HTTP. Node closes such a connection with
 * a bare status line; a caller is told here what to do, as everywhere else.
 */
import { type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { TransferError, toErrorHeaders, toProblem } from "../errors.ts";

/** How long the caller may take to read the answer before the connection is cut. */
const lingerMs = 1000;

/** Null where nobody waits for an answer: the caller is gone, or sent nothing. */
function clientFault(code: string | undefined): TransferError | null {
  if (code === "HPE_HEADER_OVERFLOW")
    return new TransferError("headers_too_large", "The header fields of the request are too large.");
  // ECONNRESET and its kin: the connection is gone. ERR_HTTP_REQUEST_TIMEOUT: the header fields did not come in time; RFC 9110
  // section 15.5.9 lets a server simply close.
  if (code === undefined || !code.startsWith("HPE_")) return null;
  return new TransferError("invalid_param", "The request is not valid HTTP/1.1.", {
    recoveryHint:
      "Correct the framing of the request: its request line, header fields and body length or chunks.",
  });
}

/** A whole HTTP/1.1 response. */
function rawResponse(error: TransferError): string {
  const body = JSON.stringify(toProblem(error));
  const headers: Record<string, string> = {
    ...toErrorHeaders(error),
    "Content-Type": "application/problem+json",
    "Content-Length": String(Buffer.byteLength(body)),
    Connection: "close",
  };
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? ""}\r\n${fields.join("")}\r\n${body}`;
}

/** @param response the answer that was under way on this connection, where there was one. */
export function answerClientError(error: Error, socket: Duplex, response: ServerResponse | undefined): void {
  const fault = clientFault((error as NodeJS.ErrnoException).code);
  const inTheMiddle = response?.headersSent && !response.writableEnded;
  if (fault === null || inTheMiddle || !socket.writable) {
    socket.destroy();
    return;
  }
  // A caller that goes on sending would turn our close into a reset that takes the answer with it, so the end waits a moment.
  socket.end(rawResponse(fault));
  setTimeout(() => socket.destroy(), lingerMs).unref();
}
