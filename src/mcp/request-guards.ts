/**
 * Who may talk to `/mcp`, and what a browser is told about it (CORS). A page on the web can point its own name at this machine, so
 * both the name that was used and the page's origin are checked, in the way of the SDK and with bodies of JSON-RPC.
 */
import {
  hostHeaderValidationResponse,
  originValidationResponse,
  validateHostHeader,
} from "@modelcontextprotocol/server";

export interface GuardOptions {
  /** Base of the URLs handed out: its host and its origin are the server's own. */
  readonly publicUrl: string;
  /** Further host names, without port. */
  readonly allowedHosts: readonly string[];
  /** Further origins, such as `https://app.example`. */
  readonly allowedOrigins: readonly string[];
}

export interface RequestGuards {
  /** The refusal, or undefined where the request may go on. */
  refuse(request: Request): Response | undefined;
  /** Answers a preflight. */
  preflight(request: Request): Response;
  /** Lets the page that asked read the response. */
  share(request: Request, response: Response): Response;
}

/** What pages send: MCP's own header fields, and what `fetch` needs to send JSON with a token. */
const requestHeaders =
  "Authorization, Content-Type, Accept, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID, X-Request-ID";
const exposedHeaders = "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After, X-Request-ID";
const methods = "GET, POST, DELETE, OPTIONS";

/** This machine: 127.0.0.0/8, ::1, and names under localhost, which never leave it (RFC 6761 section 6.3). */
const loopback = /^(?:\[::1\]|127(?:\.\d{1,3}){3}|(?:[a-z0-9-]+\.)*localhost)$/;

export function createRequestGuards({
  publicUrl,
  allowedHosts,
  allowedOrigins,
}: GuardOptions): RequestGuards {
  const own = new URL(publicUrl);
  const hosts = [own.hostname, ...allowedHosts];
  const origins = new Set([own.origin, ...allowedOrigins]);
  return {
    refuse(request) {
      const host = validateHostHeader(request.headers.get("host"), hosts);
      if (!host.ok && !loopback.test(host.hostname ?? ""))
        return hostHeaderValidationResponse(request, hosts);
      // Whole origins: the SDK compares host names, which would let in every port and scheme of a host that was allowed.
      const origin = request.headers.get("origin");
      if (origin !== null && (origins.has(origin) || isLoopbackOrigin(origin))) return undefined;
      return originValidationResponse(request, []);
    },
    preflight(request) {
      const response = new Response(null, { status: 204, headers: { Allow: methods } });
      if (request.headers.has("origin")) {
        response.headers.set("Access-Control-Allow-Methods", methods);
        response.headers.set("Access-Control-Allow-Headers", requestHeaders);
        response.headers.set("Access-Control-Max-Age", "7200");
      }
      return response;
    },
    share(request, response) {
      const origin = request.headers.get("origin");
      if (origin === null) return response;
      response.headers.set("Access-Control-Allow-Origin", origin);
      response.headers.set("Access-Control-Expose-Headers", exposedHeaders);
      response.headers.append("Vary", "Origin");
      return response;
    },
  };
}

function isLoopbackOrigin(origin: string): boolean {
  const url = URL.canParse(origin) ? new URL(origin) : null;
  return url !== null && /^https?:$/.test(url.protocol) && loopback.test(url.hostname);
}
