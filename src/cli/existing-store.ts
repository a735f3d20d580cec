/** Opens the data folder for a command that works on what is there. */
import { existsSync } from "node:fs";
import { openConfiguredStore } from "../server/server.ts";
import type { Store } from "../store/open-store.ts";
import { type CommandContext, CommandError } from "./command-context.ts";

/** Closes the store whatever happens. @throws CommandError where there is no data folder: opening would make one where somebody mistyped. */
export async function withExistingStore<T>(
  { config, logger }: CommandContext,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  if (!existsSync(config.dataDir)) throw new CommandError(`There is no data folder at ${config.dataDir}.`);
  const store = await openConfiguredStore(config, logger);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
