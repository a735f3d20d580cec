/**
 * Reads the text of one setting. Each reader returns the value or throws a `SettingFault` whose message completes the
 * sentence "NAME: "text" …".
 */
import { isIP } from "node:net";
import { delimiter } from "node:path";
import { AllowedAddresses, AllowedEntryFault } from "../tasks/kinds/import/allowed-addresses.ts";

/** What is wrong with the text of a setting, as the rest of a sentence: `is not a port (0 to 65535)`. */
export class SettingFault extends Error {
  override readonly name = "SettingFault";
}

const sizeUnits: Readonly<Record<string, number>> = {
  "": 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
};

const durationUnits: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Plain bytes, or a number with a unit: powers of ten (`500MB`) and of two (`1GiB`). */
export function readSize(text: string): number {
  const match = /^(\d+(?:\.\d+)?) ?([KMGT]i?B|B)?$/i.exec(text);
  const bytes =
    match === null
      ? Number.NaN
      : Number(match[1]) * (sizeUnits[(match[2] ?? "").toLowerCase()] ?? Number.NaN);
  if (!Number.isFinite(bytes)) throw new SettingFault("is not a size, such as 1GiB, 500MB or plain bytes");
  const rounded = Math.round(bytes);
  if (!Number.isSafeInteger(rounded)) throw new SettingFault("is larger than any file can be");
  return rounded;
}

export function readPositiveSize(text: string): number {
  const bytes = readSize(text);
  if (bytes === 0) throw new SettingFault("must be at least one byte");
  return bytes;
}

/** Null for `none`. */
export function readOptional<T>(read: (text: string) => T): (text: string) => T | null {
  return (text) => (text === "none" ? null : read(text));
}

export function readCount(text: string): number {
  const count = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(count)) throw new SettingFault("is not a whole number");
  return count;
}

/** Milliseconds. A unit is demanded: a bare number would be read as seconds by one person and as hours by the next. */
export function readDuration(text: string): number {
  const match = /^(\d+)(ms|s|m|h|d)$/.exec(text);
  const ms = match === null ? Number.NaN : Number(match[1]) * (durationUnits[match[2] ?? ""] ?? Number.NaN);
  if (!Number.isSafeInteger(ms)) throw new SettingFault("is not a duration, such as 30m, 24h or 7d");
  if (ms < 1000) throw new SettingFault("must be at least 1s");
  return ms;
}

/** Milliseconds; null for `never`. */
export function readDurationOrNever(text: string): number | null {
  if (text === "never") return null;
  try {
    return readDuration(text);
  } catch (thrown) {
    if (thrown instanceof SettingFault && thrown.message.startsWith("is not"))
      throw new SettingFault(`${thrown.message}, or never`);
    throw thrown;
  }
}

export function readPort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= 65_535)) throw new SettingFault("is not a port (0 to 65535; 0 takes any free one)");
  return port;
}

/** An address or a name to listen on, without brackets. */
export function readHost(text: string): string {
  const host = text.replace(/^\[(.*)\]$/, "$1");
  const isName = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/i.test(
    host,
  );
  // All digits and dots but no address (127.0.0.1.5, 300.1.1.1): nobody means a name by that.
  if (isIP(host) === 0 && (!isName || /^[\d.]+$/.test(host)))
    throw new SettingFault("is not an address or a host name (without scheme and port)");
  return host;
}

/** Base URL, without a slash at the end. */
export function readPublicUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw new SettingFault("is not an http or https URL, such as https://files.example.com");
  if (url.username !== "" || url.password !== "" || /[?#]/.test(text))
    throw new SettingFault("must be a plain base URL: no user, no query, no fragment");
  // It becomes part of command lines that people paste into a shell.
  if (!/^[A-Za-z0-9._~%:/[\]-]+$/.test(url.href))
    throw new SettingFault("may have letters, digits and ._~%- in its path, nothing else");
  return url.href.replace(/\/+$/, "");
}

/** Origins, separated by commas or spaces. */
export function readOrigins(text: string): readonly string[] {
  const origins = text.split(/[\s,]+/).filter((part) => part !== "");
  for (const origin of origins) {
    const url = URL.canParse(origin) ? new URL(origin) : null;
    if (url === null || url.origin === "null" || url.origin !== origin.replace(/\/$/, "").toLowerCase())
      throw new SettingFault(`has "${origin}", which is not an origin, such as https://app.example.com`);
  }
  return origins.map((origin) => new URL(origin).origin);
}

export function readSwitch(text: string): boolean {
  if (text === "1" || text === "true") return true;
  if (text === "0" || text === "false") return false;
  throw new SettingFault("is neither 1 nor 0");
}

/** One of a few words. */
export function readChoice<const T extends string>(choices: readonly T[]): (text: string) => T {
  return (text) => {
    const found = choices.find((choice) => choice === text);
    if (found === undefined) throw new SettingFault(`is none of ${choices.join(", ")}`);
    return found;
  };
}

/** Whoever sets this wants a door that is shut: to start with an open one would be the worst answer. */
export function readAuth(text: string): "none" {
  if (text === "none") return text;
  throw new SettingFault(
    "asks for authentication, and this version knows only none: everybody who reaches the server may do everything",
  );
}

export function readFolder(text: string): string {
  if (text.includes("\0")) throw new SettingFault("is not a path");
  return text;
}

/** Host names, addresses and networks, separated by commas or spaces. */
export function readAllowedHosts(text: string): readonly string[] {
  const entries = text === "none" ? [] : text.split(/[\s,]+/).filter((part) => part !== "");
  try {
    new AllowedAddresses(entries);
  } catch (thrown) {
    throw thrown instanceof AllowedEntryFault ? new SettingFault(thrown.message) : thrown;
  }
  return entries;
}

/** Folders, separated by commas or as in PATH. */
export function readFolders(text: string): readonly string[] {
  if (text === "none") return [];
  const folders = text
    .split(",")
    .flatMap((part) => part.split(delimiter))
    .map((part) => part.trim());
  return folders.filter((part) => part !== "").map(readFolder);
}
