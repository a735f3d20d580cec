/** `npm run bench`: see `usage` in options.ts. */
import { compare, scaleOf, selectWorkloads } from "./compare.ts";
import { growth } from "./growth/growth.ts";
import { type BenchOptions, readOptions, UsageError, usage } from "./options.ts";
import { cleanUpAtExit } from "./workspace.ts";

function list(options: BenchOptions): void {
  for (const workload of selectWorkloads(options.only))
    console.log(
      `${workload.name.padEnd(24)}${workload.title(scaleOf(options))} (${workload.servers.join(", ")}; ${workload.media.join(", ")})`,
    );
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  if (options.help) console.log(usage);
  else if (options.list) list(options);
  else if (options.command === "growth") await growth(options);
  else await compare(options);
}

cleanUpAtExit();
try {
  await main();
} catch (error) {
  console.error(error instanceof UsageError ? error.message : error);
  process.exitCode = 1;
}
