/** The flags of a command for the settings that concern it, and what was given by them. */
import { type Command, Option } from "commander";
import { flagOf, type SettingName, settingNames, settings, variableOf } from "../server/settings.ts";

/** `store`: for commands that open the data folder and serve nobody. */
export type Concern = "everything" | "store";

function concerns(name: SettingName, concern: Concern): boolean {
  return concern === "everything" || settings[name].concerns !== "network";
}

export function addSettingFlags(command: Command, concern: Concern): void {
  command.option("--config <file>", "JSON file with settings; flags and environment come before it");
  for (const name of settingNames.filter((each) => concerns(each, concern))) {
    const { placeholder, help, shown } = settings[name];
    const flag = placeholder === null ? flagOf(name) : `${flagOf(name)} <${placeholder}>`;
    const fallback = placeholder === null ? "" : `, default ${shown}`;
    command.addOption(new Option(flag, `${help} (${variableOf(name)}${fallback})`));
  }
}

/** Texts as `loadConfig` takes them. */
export function settingFlagsOf(
  given: Readonly<Record<string, unknown>>,
): Partial<Record<SettingName, string>> {
  const flags: Partial<Record<SettingName, string>> = {};
  for (const name of settingNames) {
    const value = given[name];
    if (value === true) flags[name] = "1";
    else if (typeof value === "string") flags[name] = value;
  }
  return flags;
}
