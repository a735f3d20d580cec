/** Which names and addresses mean this machine and nobody else. */
import { isIP } from "node:net";

/** `hostname` as in a URL or a setting: without port; IPv6 with or without brackets. */
export function isLoopbackHost(hostname: string): boolean {
  const name = hostname.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  if (isIP(name) === 4) return name.startsWith("127.");
  if (isIP(name) === 6) return new URL(`http://[${name}]`).hostname === "[::1]" || /^::ffff:127\./.test(name);
  // RFC 6761 section 6.3: names under localhost never leave the machine.
  return name === "localhost" || name.endsWith(".localhost");
}

/** Listening there takes requests from every network of the machine, so the address says nothing of how it is reached. */
export function isWildcardHost(host: string): boolean {
  return host === "0.0.0.0" || (isIP(host) === 6 && new URL(`http://[${host}]`).hostname === "[::]");
}

/** A host as it stands in a URL. */
export function hostInUrl(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : host;
}
