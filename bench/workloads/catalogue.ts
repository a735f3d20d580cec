/** All workloads, in the order in which they run. */
import type { AnyWorkload } from "../workload.ts";
import { bodyWorkloads, memoryWorkloads } from "./bodies.ts";
import { downloadWorkloads } from "./downloads.ts";
import { rateWorkloads } from "./rates.ts";
import { smallFileWorkloads } from "./small-files.ts";
import { taskWorkloads } from "./tasks.ts";

export const workloads: readonly AnyWorkload[] = [
  ...bodyWorkloads,
  ...smallFileWorkloads,
  ...rateWorkloads,
  ...downloadWorkloads,
  ...taskWorkloads,
  ...memoryWorkloads,
];
