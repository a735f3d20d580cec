/**
 * Which addresses a fetch may connect to: those of the public internet, and what the operator has allowed beyond it. It is asked about
 * addresses, never about names alone, because a name leads wherever its owner wants at that moment.
 */
import ipaddr from "ipaddr.js";

/** What is wrong with an entry of the list, as the rest of a sentence. */
export class AllowedEntryFault extends Error {
  override readonly name = "AllowedEntryFault";
}

type Network = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

const hostName = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*$/;

/** Globally routed unicast is all in here; what else IPv6 has is for other purposes, or carries an IPv4 address inside. */
const globalUnicast: Network = [ipaddr.IPv6.parse("2000::"), 3];

export class AllowedAddresses {
  readonly entries: readonly string[];
  readonly #hosts = new Set<string>();
  readonly #networks: Network[] = [];

  /**
   * Entries are host names, addresses, or networks such as `10.1.0.0/16`.
   *
   * @throws AllowedEntryFault
   */
  constructor(entries: readonly string[]) {
    this.entries = entries;
    for (const entry of entries) {
      const network = networkOf(entry);
      if (network !== null) this.#networks.push(network);
      else if (hostName.test(plainHost(entry)) && !/^[\d.]+$/.test(entry)) this.#hosts.add(plainHost(entry));
      else throw new AllowedEntryFault(`has "${entry}", which is no host name, address or network`);
    }
  }

  /** A name whose addresses may be any. */
  allowsHost(host: string): boolean {
    return this.#hosts.has(plainHost(host));
  }

  allowsAddress(text: string): boolean {
    if (!ipaddr.isValid(text)) return false;
    // An IPv4 address in IPv6 clothes is judged as what it reaches.
    const address = ipaddr.process(text);
    return isPublic(address) || this.#networks.some((network) => contains(network, address));
  }
}

function isPublic(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  if (address.range() !== "unicast") return false;
  return address.kind() === "ipv4" || contains(globalUnicast, address);
}

function contains([network, bits]: Network, address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  return network.kind() === address.kind() && address.match(network, bits);
}

function networkOf(entry: string): Network | null {
  const text = entry.replace(/^\[(.*)\]$/, "$1");
  // Only the forms that people read as they are: not 10.1, 0x7f000001 or 127.1/8.
  if (ipaddr.IPv4.isValidCIDRFourPartDecimal(text) || ipaddr.IPv6.isValidCIDR(text))
    return ipaddr.parseCIDR(text);
  if (!ipaddr.IPv4.isValidFourPartDecimal(text) && !ipaddr.IPv6.isValid(text)) return null;
  const address = ipaddr.process(text);
  return [address, address.kind() === "ipv4" ? 32 : 128];
}

function plainHost(host: string): string {
  return host.toLowerCase().replace(/\.$/, "");
}
