/** Structured fields (RFC 9651) of requests. Null stands for a field that is absent or not what its specification wants. */
import { parseDictionary, parseItem } from "structured-headers";

function attempt<T>(parse: () => T): T | null {
  try {
    return parse();
  } catch {
    return null;
  }
}

export function booleanItem(text: string | null): boolean | null {
  const value = text === null ? null : attempt(() => parseItem(text)[0]);
  return typeof value === "boolean" ? value : null;
}

/** A whole number from 0 to 999,999,999,999,999. */
export function countItem(text: string | null): number | null {
  const value = text === null ? null : attempt(() => parseItem(text)[0]);
  // A decimal is another type even where it is whole, and the parser gives both as numbers.
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && !text?.includes(".")
    ? Math.abs(value)
    : null;
}

/** Members of a dictionary whose values are byte sequences; null for a member that is anything else. */
export function byteMembers(text: string): ReadonlyMap<string, Buffer | null> | null {
  const members = attempt(() => parseDictionary(text));
  if (members === null) return null;
  return new Map(
    [...members].map(([key, [value]]) => [key, value instanceof ArrayBuffer ? Buffer.from(value) : null]),
  );
}
