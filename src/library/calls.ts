/** What the calls of tools on a user's server are given: who is calling, and the engines of the store. */
import type { TransferError } from "../errors.ts";
import type { Calls } from "../mcp/registrar.ts";
import { defaultPrincipal, type SdkCall } from "../mcp/sdk-call.ts";
import type { Links } from "../transfer/links.ts";
import type { Store } from "./open-store.ts";

/**
 * Names who is calling; what belongs to one is hidden from all others. Throw {@link TransferError} `unauthorized` or `forbidden` where
 * nobody may.
 *
 * The default takes the subject of the token (`authInfo.extra.sub`) where its verifier has kept it, else `authInfo.clientId`, else `local`. A
 * client id names a program: where many people use one, keep the subject, or name them here.
 *
 * @example
 * const principalOf: PrincipalOf = ({ authInfo }) => String(authInfo?.extra?.email ?? "nobody");
 */
export type PrincipalOf = (call: SdkCall) => string | Promise<string>;

export function callsOf(store: Store, links: Links, principalOf: PrincipalOf = defaultPrincipal): Calls {
  return {
    async contextOf(call, requestId) {
      return {
        principal: await principalOf(call),
        signal: call.signal,
        requestId,
        engine: store.transfers,
        tasks: store.tasks,
        links,
      };
    },
    onFault(error: TransferError, requestId, tool) {
      store.log({
        level: "error",
        event: "mcp.fault",
        requestId,
        ...(tool !== undefined && { tool }),
        error: error.cause ?? error,
      });
    },
  };
}
