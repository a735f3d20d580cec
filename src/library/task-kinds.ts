/**
 * The handlers of a store: one for each name, whichever of its servers registered it. Tasks outlive servers, which may be built for each
 * request, so a handler belongs to the store and is registered once.
 */
import type { TaskKind } from "../tasks/engine.ts";
import { registerFileKinds } from "../tasks/kinds/register.ts";
import type { Store } from "./open-store.ts";

/** Of each store, the source text of the handler by kind. It goes with the store. */
const known = new WeakMap<Store, Map<string, string>>();

/**
 * @param source the user's function: another one under the same name is a mistake, while a server that is built again brings a new
 *   function with the same text.
 * @throws TypeError where the store has another handler by this name.
 */
export function registerKind(store: Store, kind: TaskKind, source: (...args: never) => unknown): void {
  const kinds = known.get(store) ?? new Map<string, string>();
  known.set(store, kinds);
  const text = String(source);
  const before = kinds.get(kind.kind);
  if (before === undefined) {
    store.tasks.register(kind);
    kinds.set(kind.kind, text);
  } else if (before !== text)
    throw new TypeError(
      `This store has another handler for '${kind.kind}' already. Tools of different servers over one store need names of their own; set kind where the tools must have the same name.`,
    );
}

const withFileKinds = new WeakSet<Store>();

/** Only where they are offered: this process would take such tasks of others too, under rules for imports that are not theirs. */
export function registerFileKindsOnce(store: Store): void {
  if (withFileKinds.has(store)) return;
  registerFileKinds(store.tasks, { transfers: store.transfers, ...store.imports });
  withFileKinds.add(store);
}
