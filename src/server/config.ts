/**
 * The settings of one process: flags first, then the environment, then the file named by `--config`. All faults are found
 * before anything starts, and told at once.
 *
 * This is the only module that touches `process.env`, and it does so when asked, never while it is loaded.
 */
import { dirname, resolve } from "node:path";
import { readSettingsFile } from "./config-file.ts";
import { isLoopbackHost, isWildcardHost } from "./loopback.ts";
import { nearestName } from "./nearest-name.ts";
import { SettingFault } from "./setting-values.ts";
import {
  flagOf,
  type SettingName,
  type SettingValues,
  settingNames,
  settings,
  variableOf,
} from "./settings.ts";

/** Values of the settings; `dataDir` and `importRoots` are absolute. */
export type ServerConfig = SettingValues;

export interface ConfigSources {
  /** Texts of the flags given; a switch that was given is "1". */
  readonly flags?: Readonly<Partial<Record<SettingName, string>>>;
  readonly configFile?: string | undefined;
  /** Default: the environment of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Relative paths in flags and environment start here; those in the settings file start at its folder. */
  readonly workingDir?: string;
}

export interface LoadedConfig {
  readonly config: ServerConfig;
  /** Sentences: what looks wrong and yet stops nothing. */
  readonly warnings: readonly string[];
}

/** Everything that is wrong with the settings, a sentence each. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join("\n"));
    this.faults = faults;
  }
}

interface Given {
  readonly text: string;
  /** How the person named it: `--port`, `LONGSHORE_PORT`, `"port" in longshore.json`. */
  readonly source: string;
  readonly baseDir: string;
}

/** @throws ConfigError with every fault of every source. */
export function loadConfig(sources: ConfigSources = {}): LoadedConfig {
  const env = sources.env ?? process.env;
  const workingDir = sources.workingDir ?? process.cwd();
  const configFile = sources.configFile === undefined ? null : resolve(workingDir, sources.configFile);
  const file = configFile === null ? null : readSettingsFile(configFile);
  const faults = [...(file?.faults ?? [])];

  const given = (name: SettingName): Given | null => {
    const flag = sources.flags?.[name];
    if (flag !== undefined) return { text: flag, source: flagOf(name), baseDir: workingDir };
    const variable = env[variableOf(name)];
    // Empty is what an unset variable becomes in compose files and shell scripts.
    if (variable !== undefined && variable !== "")
      return { text: variable.trim(), source: variableOf(name), baseDir: workingDir };
    const entry = file?.texts.get(name);
    if (entry === undefined || configFile === null) return null;
    return { text: entry.text, source: `"${entry.key}" in ${configFile}`, baseDir: dirname(configFile) };
  };

  const values: Record<string, unknown> = {};
  const sourceOf = new Map<SettingName, string>();
  for (const name of settingNames) {
    const found = given(name);
    values[name] = settings[name].fallback;
    if (found !== null) {
      sourceOf.set(name, found.source);
      try {
        values[name] = settings[name].read(found.text);
      } catch (thrown) {
        if (!(thrown instanceof SettingFault)) throw thrown;
        faults.push(`${found.source}: "${found.text}" ${thrown.message}.`);
      }
    }
    const baseDir = found?.baseDir ?? workingDir;
    if (name === "dataDir") values[name] = resolve(baseDir, String(values[name]));
    if (name === "importRoots")
      values[name] = (values[name] as readonly string[]).map((folder) => resolve(baseDir, folder));
  }
  // Each entry was read by the reader of its own setting, which the loop's type cannot say.
  const config = values as unknown as ServerConfig;
  faults.push(...contradictions(config, (name) => sourceOf.get(name) ?? variableOf(name)));
  if (faults.length > 0) throw new ConfigError(faults);
  return { config, warnings: unknownVariables(env) };
}

/** Settings that are well formed and do not go together. */
function contradictions(config: ServerConfig, named: (name: SettingName) => string): string[] {
  const faults: string[] = [];
  if (!isLoopbackHost(config.host) && !config.insecure)
    faults.push(
      `${named("host")}: "${config.host}" lets other machines in, and nobody is asked who they are. ` +
        "Listen on 127.0.0.1, or set LONGSHORE_INSECURE=1 if everyone who can reach it may read and write everything.",
    );
  if (isWildcardHost(config.host) && config.publicUrl === null)
    faults.push(
      `${named("host")}: "${config.host}" does not say how this server is reached. ` +
        "Set LONGSHORE_PUBLIC_URL to the base URL that callers use.",
    );
  if (config.inlineChunkBytes > config.inlineFileBytes)
    faults.push(
      `${named("inlineChunkBytes")}: a chunk (${config.inlineChunkBytes} bytes) may not be larger than ` +
        `the file (${named("inlineFileBytes")}, ${config.inlineFileBytes} bytes).`,
    );
  return faults;
}

function unknownVariables(env: Readonly<Record<string, string | undefined>>): string[] {
  const known = [...settingNames.map(variableOf), ...remoteVariables];
  return Object.keys(env)
    .filter((name) => name.startsWith("LONGSHORE_") && !known.includes(name))
    .sort()
    .map((name) => {
      const nearest = nearestName(name, known);
      return `${name} is no setting and has no effect${nearest === null ? "." : `; did you mean ${nearest}?`}`;
    });
}

const remoteVariables = ["LONGSHORE_URL", "LONGSHORE_KEY"];
const defaultUrl = "http://127.0.0.1:8484";

export interface RemoteSettings {
  /** Base URL of a running server, without a slash at the end. */
  readonly url: string;
  /** What its callers authenticate with; null where nothing is set. */
  readonly key: string | null;
}

/**
 * How the commands over a running server find it. A key is a secret, so there is no flag for it.
 *
 * @param flag `--url`, where it was given.
 * @throws ConfigError
 */
export function remoteSettings(
  flag: string | undefined,
  env: Readonly<Record<string, string | undefined>> = process.env,
): RemoteSettings {
  const text = flag ?? (env.LONGSHORE_URL || defaultUrl);
  if (!/^https?:\/\/./i.test(text) || !URL.canParse(text))
    throw new ConfigError([
      `${flag === undefined ? "LONGSHORE_URL" : "--url"}: "${text}" is no URL, such as ${defaultUrl}.`,
    ]);
  // People paste the MCP URL, too.
  return { url: text.replace(/\/+$/, "").replace(/\/mcp$/, ""), key: env.LONGSHORE_KEY || null };
}

/**
 * Gives the process enough threads for file work: writes, syncs and reads of many transfers block one thread each, and four (the
 * default) let one slow disk hold up everything. Has an effect only before the first use of the pool, so it is the first thing
 * that the command line does. A number that the operator has set stays.
 */
export function widenThreadPool(threads: number): void {
  process.env.UV_THREADPOOL_SIZE ??= String(threads);
}
