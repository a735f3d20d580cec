/**
 * Every setting of the server, once: what it is called, how its text is read, what holds where nobody says anything. The flags,
 * the environment variables, the keys of a settings file and their help all come from here.
 */
import {
  readAllowedHosts,
  readAuth,
  readChoice,
  readCount,
  readDuration,
  readDurationOrNever,
  readFolder,
  readFolders,
  readHost,
  readOptional,
  readOrigins,
  readPort,
  readPositiveSize,
  readPublicUrl,
  readSize,
  readSwitch,
} from "./setting-values.ts";

interface Setting<T> {
  readonly read: (text: string) => T;
  readonly fallback: T;
  /** The fallback as people write it. */
  readonly shown: string;
  /** What stands after the flag in its help; null for a switch, which takes no value. */
  readonly placeholder: string | null;
  readonly help: string;
  /** `store` settings matter to every command that opens the data folder, `network` ones to a server alone. */
  readonly concerns: "network" | "store" | "both";
}

const setting = <T>(value: Setting<T>): Setting<T> => Object.freeze(value);

export const settings = {
  host: setting<string>({
    read: readHost,
    fallback: "127.0.0.1",
    shown: "127.0.0.1",
    placeholder: "address",
    help: "address or name to listen on; one that others can reach needs --insecure",
    concerns: "network",
  }),
  port: setting<number>({
    read: readPort,
    fallback: 8484,
    shown: "8484",
    placeholder: "number",
    help: "port to listen on; 0 takes any free one",
    concerns: "network",
  }),
  publicUrl: setting<string | null>({
    read: readPublicUrl,
    fallback: null,
    shown: "from host and port",
    placeholder: "url",
    help: "base of every URL handed out",
    concerns: "network",
  }),
  trustProxy: setting<boolean>({
    read: readSwitch,
    fallback: false,
    shown: "0",
    placeholder: null,
    help: "take the base of URLs from X-Forwarded-Proto and X-Forwarded-Host",
    concerns: "network",
  }),
  insecure: setting<boolean>({
    read: readSwitch,
    fallback: false,
    shown: "0",
    placeholder: null,
    help: "serve others than this machine although there is no authentication",
    concerns: "network",
  }),
  auth: setting<"none">({
    read: readAuth,
    fallback: "none",
    shown: "none",
    placeholder: "how",
    help: "how callers say who they are; this version knows only none",
    concerns: "network",
  }),
  allowedOrigins: setting<readonly string[]>({
    read: readOrigins,
    fallback: [],
    shown: "none",
    placeholder: "origins",
    help: "web origins, besides loopback and its own, that may use /mcp and create uploads; separated by commas",
    concerns: "network",
  }),
  dataDir: setting<string>({
    read: readFolder,
    fallback: "./storage",
    shown: "./storage",
    placeholder: "folder",
    help: "where state and files are kept",
    concerns: "both",
  }),
  maxFileBytes: setting<number>({
    read: readPositiveSize,
    fallback: 2 ** 40,
    shown: "1TiB",
    placeholder: "size",
    help: "largest file",
    concerns: "store",
  }),
  quotaBytes: setting<number | null>({
    read: readOptional(readSize),
    fallback: null,
    shown: "none",
    placeholder: "size",
    help: "most bytes that one caller may keep",
    concerns: "store",
  }),
  quotaFiles: setting<number | null>({
    read: readOptional(readCount),
    fallback: null,
    shown: "none",
    placeholder: "number",
    help: "most files that one caller may keep",
    concerns: "store",
  }),
  minFreeBytes: setting<number>({
    read: readSize,
    fallback: 2 ** 30,
    shown: "1GiB",
    placeholder: "size",
    help: "free disk space below which nothing is written any more",
    concerns: "store",
  }),
  uploadTtl: setting<number>({
    read: readDuration,
    fallback: 86_400_000,
    shown: "24h",
    placeholder: "duration",
    help: "an unfinished upload expires this long after its last byte",
    concerns: "store",
  }),
  fileTtl: setting<number | null>({
    read: readDurationOrNever,
    fallback: null,
    shown: "never",
    placeholder: "duration",
    help: "a finished file expires this long after it was completed",
    concerns: "store",
  }),
  downloadTtl: setting<number>({
    read: readDuration,
    fallback: 3_600_000,
    shown: "1h",
    placeholder: "duration",
    help: "life of a download URL",
    concerns: "store",
  }),
  inlineChunkBytes: setting<number>({
    read: readPositiveSize,
    fallback: 262_144,
    shown: "262144",
    placeholder: "size",
    help: "largest chunk that upload_write takes",
    concerns: "store",
  }),
  inlineFileBytes: setting<number>({
    read: readPositiveSize,
    fallback: 4_194_304,
    shown: "4194304",
    placeholder: "size",
    help: "largest file that may be written with upload_write",
    concerns: "store",
  }),
  allowImport: setting<readonly string[]>({
    read: readAllowedHosts,
    fallback: [],
    shown: "none",
    placeholder: "hosts",
    help: "hosts, addresses and networks from which file_import may fetch beyond the public internet; separated by commas",
    concerns: "network",
  }),
  importRoots: setting<readonly string[]>({
    read: readFolders,
    fallback: [],
    shown: "none",
    placeholder: "folders",
    help: "folders from which file_import may take file URLs; separated by commas",
    concerns: "network",
  }),
  fsync: setting<"always" | "never">({
    read: readChoice(["always", "never"]),
    fallback: "always",
    shown: "always",
    placeholder: "when",
    help: "always: bytes and state are on disk before they are acknowledged; never: for scratch use",
    concerns: "store",
  }),
  log: setting<"debug" | "info" | "warn" | "error">({
    read: readChoice(["debug", "info", "warn", "error"]),
    fallback: "info",
    shown: "info",
    placeholder: "level",
    help: "debug, info, warn or error; JSON lines on stderr",
    concerns: "both",
  }),
} as const;

export type SettingName = keyof typeof settings;

export type SettingValues = {
  readonly [Name in SettingName]: (typeof settings)[Name] extends Setting<infer T> ? T : never;
};

export const settingNames = Object.keys(settings) as SettingName[];

/** `maxFileBytes` → `LONGSHORE_MAX_FILE_BYTES`. */
export function variableOf(name: SettingName): string {
  return `LONGSHORE_${name.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

/** `maxFileBytes` → `--max-file-bytes`. */
export function flagOf(name: SettingName): string {
  return `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter}`).toLowerCase()}`;
}
