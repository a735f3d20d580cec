/** What the callbacks of a user's `McpServer` are given, of either SDK, in one form. */

/**
 * `AuthInfo` of both SDKs, as far as it says who is calling.
 *
 * @example
 * const isAdmin = ({ scopes }: CallerAuth) => scopes.includes("admin");
 */
export interface CallerAuth {
  /** The OAuth client: the program, which many people may use. */
  readonly clientId: string;
  readonly scopes: readonly string[];
  /** What the token's verifier found besides; `sub` names the person where it was kept. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

/**
 * One request to a user's server.
 *
 * @example
 * const principalOf = ({ authInfo }: SdkCall) => authInfo?.clientId ?? "nobody";
 */
export interface SdkCall {
  /** Undefined where nobody was asked who they are: on stdio, and over HTTP without authentication. */
  readonly authInfo: CallerAuth | undefined;
  /** Aborts when the caller has gone. */
  readonly signal: AbortSignal;
  /** What the SDK gave: `RequestHandlerExtra` of v1, `ServerContext` of v2. */
  readonly sdkContext: unknown;
}

interface ExtraV1 {
  readonly signal?: AbortSignal;
  readonly authInfo?: CallerAuth;
}

interface ContextV2 {
  readonly mcpReq?: { readonly signal?: AbortSignal };
  readonly http?: { readonly authInfo?: CallerAuth };
}

const never = new AbortController().signal;

export function sdkCallOf(sdkContext: unknown): SdkCall {
  const given = (typeof sdkContext === "object" && sdkContext !== null ? sdkContext : {}) as ExtraV1 &
    ContextV2;
  return {
    authInfo: given.http?.authInfo ?? given.authInfo,
    signal: given.mcpReq?.signal ?? given.signal ?? never,
    sdkContext,
  };
}

/** Where nobody is asked who they are, everybody is this one. */
export const localPrincipal = "local";

/** The person where the token names one, else the client; `local` where there is no token. */
export function defaultPrincipal({ authInfo }: SdkCall): string {
  if (authInfo === undefined) return localPrincipal;
  const subject = authInfo.extra?.sub;
  return typeof subject === "string" && subject !== "" ? subject : authInfo.clientId;
}
