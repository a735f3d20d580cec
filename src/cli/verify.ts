/** `longshore verify`: reads every stored file again and compares size and sha256 with the record. Repairs nothing. */
import type { StoredFault } from "../transfer/engine.ts";
import type { Run } from "./command-context.ts";
import { withExistingStore } from "./existing-store.ts";

/** Status 1 where a fault was found. */
export const verify: Run = (context) =>
  withExistingStore(context, async ({ transfers }) => {
    const { json, print } = context;
    const found: StoredFault[] = [];
    const { checkedFiles, checkedBytes, faults } = await transfers.verify((fault) => {
      if (json) found.push(fault);
      else print(`${fault.handle} ${JSON.stringify(fault.filename)}: ${fault.fault}, ${fault.detail}`);
    });
    if (json) print(JSON.stringify({ checkedFiles, checkedBytes, faults: found }));
    else print(`Checked: ${checkedFiles} files, ${checkedBytes} bytes. Faults: ${faults}.`);
    return faults === 0 ? 0 : 1;
  });
