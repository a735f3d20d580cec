/** Takes secrets out of what is about to be logged. */

/** A ticket stands behind these folders of a URL; whoever reads it there can use it. */
const ticketInText = /(\/(?:files|d)\/)[A-Za-z0-9_-]{16,}/g;
const bearerInText = /(Bearer\s+)[^\s"'\\,;]+/gi;

/** Any text: ticket URLs and bearer tokens in it, wherever they stand. */
export function redactText(text: string): string {
  return text.replaceAll(ticketInText, "$1[ticket]").replaceAll(bearerInText, "$1[token]");
}

/** The path of a request: what stands where a ticket belongs is hidden even if it does not look like one. */
export function redactPath(path: string): string {
  const [, folder, ticket] = /^(\/(?:files|d)\/)([^/]*)/.exec(path) ?? [];
  if (folder === undefined || ticket === undefined || ticket === "") return path;
  return `${folder}[ticket]${path.slice(folder.length + ticket.length)}`;
}

/** Fields that would hold a secret: nothing in this house logs them, and a slip stays without effect. */
export function isSecretField(name: string): boolean {
  return /^(?:ticket|token|key|secret|password|cookie|authorization)$/i.test(name);
}
