/**
 * One request to an address that was checked. The name is looked up here, each address is judged, and the connection is made to the
 * ones that passed: a second lookup, which could answer otherwise, never happens.
 */
import { lookup } from "node:dns/promises";
import http from "node:http";
import https from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { AllowedAddresses } from "./allowed-addresses.ts";
import { urlNotAllowed } from "./import-url.ts";
import { SourceTrouble } from "./source.ts";

/** All addresses of a name. */
export type Resolve = (host: string) => Promise<readonly string[]>;

export interface RequestParts {
  readonly allowed: AllowedAddresses;
  readonly resolve: Resolve;
  /** Without a byte for this long the connection is given up. */
  readonly idleMs: number;
}

const lookupMs = 15_000;

export const resolveHost: Resolve = async (host) =>
  (await lookup(host, { all: true })).map(({ address }) => address);

/** The answer's head; its body waits to be read. Redirects are not followed. */
export async function pinnedGet(
  url: URL,
  headers: Readonly<Record<string, string>>,
  { allowed, resolve, idleMs }: RequestParts,
  signal: AbortSignal,
): Promise<http.IncomingMessage> {
  const addresses = await checkedAddresses(url.hostname, allowed, resolve, signal);
  const { request, Agent } = url.protocol === "https:" ? https : http;
  // An agent of its own: neither connections of other fetches nor a proxy from the environment, which would look names up itself.
  const agent = new Agent({ keepAlive: false });
  return new Promise((settle, reject) => {
    const sent = request(url, { headers, agent, signal, lookup: answering(addresses), timeout: idleMs });
    sent.on("timeout", () => sent.destroy(new SourceTrouble("The source sent nothing for too long.")));
    sent.on("error", (error) => reject(signal.aborted ? signal.reason : asTrouble(error)));
    sent.on("response", (response) => {
      // It may break off before anybody listens.
      response.on("error", () => {});
      settle(response);
    });
    sent.end();
  });
}

async function checkedAddresses(
  hostname: string,
  allowed: AllowedAddresses,
  resolve: Resolve,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  const addresses = isIP(host) === 0 ? await resolved(host, resolve, signal) : [host];
  if (isIP(host) === 0 && allowed.allowsHost(host)) return addresses;
  const checked = addresses.filter((address) => allowed.allowsAddress(address));
  if (checked.length === 0) {
    throw urlNotAllowed(
      `${host} is not on the public internet, and this server does not fetch from there.`,
      "Use a public URL, upload the file with upload_create, or ask the operator to allow the host with LONGSHORE_ALLOW_IMPORT.",
    );
  }
  return checked;
}

async function resolved(host: string, resolve: Resolve, signal: AbortSignal): Promise<readonly string[]> {
  const enough = new AbortController();
  const giveUp = AbortSignal.any([signal, enough.signal]);
  const late = delay(lookupMs, undefined, { signal: giveUp }).then(() => {
    throw new SourceTrouble(`The address of ${host} was not found in time.`);
  });
  try {
    const addresses = await Promise.race([resolve(host), late]);
    if (addresses.length === 0) throw new SourceTrouble(`${host} has no address.`);
    return addresses;
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof SourceTrouble
      ? error
      : new SourceTrouble(`The address of ${host} cannot be found.`);
  } finally {
    enough.abort();
    late.catch(() => {});
  }
}

function answering(addresses: readonly string[]): LookupFunction {
  const answers = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_host, options, callback) => {
    const fitting =
      options.family === 4 || options.family === 6
        ? answers.filter((one) => one.family === options.family)
        : answers;
    const [first] = fitting;
    if (first === undefined) callback(new Error("There is no address of that family."), "");
    else if (options.all === true) callback(null, fitting);
    else callback(null, first.address, first.family);
  };
}

function asTrouble(error: Error): SourceTrouble {
  if (error instanceof SourceTrouble) return error;
  const { code } = error as NodeJS.ErrnoException;
  return new SourceTrouble(`The source cannot be reached${code === undefined ? "" : ` (${code})`}.`);
}
