/** The version of this package, as its manifest says it: in `src/` and in `dist/` it stands two folders up. */
import { readFileSync } from "node:fs";

export function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  const version = (manifest as { version?: unknown }).version;
  return typeof version === "string" ? version : "unknown";
}
