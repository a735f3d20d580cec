/** `npm run conformance`: the official suite against this project's endpoint. Exit status 1 for every fault. */
import { startFixtureServer } from "./fixture-server.ts";
import { revisions, runSuite } from "./run-suite.ts";

const server = await startFixtureServer();
try {
  for (const revision of revisions) {
    const { scenarios, passed, expected, faults } = await runSuite(server.url, revision);
    console.log(
      `${revision}: ${scenarios.length} scenarios, ${passed} checks passed, ${expected.length} failed as expected, ${faults.length} faults`,
    );
    for (const fault of faults) console.log(`  ${fault}`);
    if (faults.length > 0) process.exitCode = 1;
  }
} finally {
  await server.stop();
}
