/** Reads a settings file: one JSON object whose keys are the names of settings, as in the flags or as in the environment. */
import { readFileSync } from "node:fs";
import { nearestName } from "./nearest-name.ts";
import { flagOf, type SettingName, settingNames, variableOf } from "./settings.ts";

export interface FileSettings {
  /** The texts of the settings that the file gives. */
  readonly texts: ReadonlyMap<SettingName, { readonly text: string; readonly key: string }>;
  readonly faults: readonly string[];
}

/** `{"maxFileBytes": …}`, `{"max-file-bytes": …}` and `{"LONGSHORE_MAX_FILE_BYTES": …}` all name one setting. */
function settingOfKey(key: string): SettingName | null {
  return settingNames.find((name) => [name, flagOf(name).slice(2), variableOf(name)].includes(key)) ?? null;
}

function textOf(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (typeof value === "number" && Number.isFinite(value)) return String(value);
  if (typeof value === "boolean") return value ? "1" : "0";
  if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value.join(",");
  return null;
}

export function readSettingsFile(path: string): FileSettings {
  const texts = new Map<SettingName, { text: string; key: string }>();
  const faults: string[] = [];
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(path, "utf8"));
  } catch (thrown) {
    const reason =
      thrown instanceof SyntaxError
        ? `is not JSON: ${thrown.message}`
        : `cannot be read: ${reasonOf(thrown)}`;
    return { texts, faults: [`--config: ${path} ${reason}.`] };
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    return { texts, faults: [`--config: ${path} is not a JSON object, such as {"port": 8484}.`] };
  for (const [key, value] of Object.entries(parsed)) {
    const name = settingOfKey(key);
    const text = textOf(value);
    if (name === null) {
      const nearest = nearestName(key, settingNames);
      faults.push(`${path}: "${key}" is no setting${nearest === null ? "" : `; did you mean "${nearest}"?`}`);
    } else if (text === null) {
      faults.push(`${path}: "${key}" must be a string, a number, true or false, or a list of strings.`);
    } else if (texts.has(name)) {
      faults.push(`${path}: "${key}" and "${texts.get(name)?.key}" are the same setting.`);
    } else {
      texts.set(name, { text, key });
    }
  }
  return { texts, faults };
}

function reasonOf(thrown: unknown): string {
  const code = (thrown as NodeJS.ErrnoException).code;
  if (code === "ENOENT") return "there is no such file";
  if (code === "EISDIR") return "it is a folder";
  return thrown instanceof Error ? thrown.message : String(thrown);
}
