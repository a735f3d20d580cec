/** The page at `/`: what this is and how to connect. No script, nothing from elsewhere. */
import { createHash } from "node:crypto";
import { curlUploadLine } from "./curl-upload-line.ts";

export interface LandingFacts {
  readonly version: string;
  /** Base URL, without a slash at the end. */
  readonly publicUrl: string;
  /** `ready`, or a sentence that says what is wrong. */
  readonly health: string;
}

const style = `
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0; }
h2 { font-size: 1.1rem; margin-top: 2rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; }
dt { opacity: .7; }
dd { margin: 0; overflow-wrap: anywhere; }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 6px; padding: .75rem; overflow-x: auto; }
code { font-family: ui-monospace, monospace; font-size: .9em; }
`;

const styleHash = createHash("sha256").update(style).digest("base64");

/** Nothing may load or run, and the page may stand in no frame; the one style sheet is named by its hash. */
export const landingPageCsp = [
  "default-src 'none'",
  `style-src 'sha256-${styleHash}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? "");
}

export function landingPage(facts: LandingFacts): string {
  const url = escapeHtml(facts.publicUrl);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Longshore</title>
<style>${style}</style>
</head>
<body>
<h1>Longshore</h1>
<p>Moves large files for MCP servers. The model holds handles, offsets and digests; the bytes go over HTTP, and go on where they
stopped.</p>
<dl>
<dt>MCP</dt><dd><code>${url}/mcp</code></dd>
<dt>tus uploads</dt><dd><code>${url}/files</code></dd>
<dt>Version</dt><dd>${escapeHtml(facts.version)}</dd>
<dt>Health</dt><dd>${escapeHtml(facts.health)} (<a href="${url}/readyz">/readyz</a>)</dd>
</dl>
<h2>Connect an MCP client</h2>
<pre><code>claude mcp add --transport http longshore ${url}/mcp</code></pre>
<p>Other clients take the MCP URL above as a Streamable HTTP server.</p>
<h2>Upload a file without a model</h2>
<p>Any tus 1.0 client can create an upload at the URL above and send to it. With curl:</p>
<pre><code>${escapeHtml(curlUploadLine(facts.publicUrl, "FILE"))}</code></pre>
</body>
</html>
`;
}
