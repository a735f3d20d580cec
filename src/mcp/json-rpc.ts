/** Reading the body of an MCP request within bounds, and answers for what never becomes a call. */
import { readRequestBody } from "@modelcontextprotocol/server";
import { errorBody, type TransferError, toErrorHeaders } from "../errors.ts";

/** JSON-RPC 2.0 section 5.1. */
const parseError = -32_700;
/** The code of MCP's own transports for what is refused before a method is known. */
const refused = -32_000;

/** The JSON in the body, or the answer to one that holds none. Reads no further than `maxBytes`. */
export async function readJson(
  request: Request,
  maxBytes: number,
): Promise<{ readonly json: unknown } | Response> {
  let text: string;
  try {
    const body = await readRequestBody(request, maxBytes);
    if (body.tooLarge)
      return jsonRpcError(413, refused, `The body of a request has at most ${maxBytes} bytes.`);
    text = body.text;
  } catch {
    return jsonRpcError(400, parseError, "Parse error: the body could not be read.");
  }
  try {
    return { json: JSON.parse(text) };
  } catch {
    return jsonRpcError(400, parseError, "Parse error: the body is not valid JSON.");
  }
}

/** An error of the catalogue that ends a request before any tool is called, such as a missing key. */
export function refusal(error: TransferError, requestId: string): Response {
  return jsonRpcError(error.status, refused, error.message, {
    data: errorBody(error, requestId),
    headers: toErrorHeaders(error),
  });
}

function jsonRpcError(
  status: number,
  code: number,
  message: string,
  { data, headers = {} }: { data?: unknown; headers?: Record<string, string> } = {},
): Response {
  const error = { code, message, ...(data !== undefined && { data }) };
  return Response.json({ jsonrpc: "2.0", error, id: null }, { status, headers });
}
