/** The official conformance suite, in both eras; what fails is expected to, with a reason, in `expected-failures.json`. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type FixtureServer, startFixtureServer } from "./fixture-server.ts";
import { revisions, runSuite } from "./run-suite.ts";

let server: FixtureServer | undefined;
beforeAll(async () => {
  server = await startFixtureServer();
});
afterAll(() => server?.stop());

const taskScenarios = [
  "tasks-lifecycle",
  "tasks-capability-negotiation",
  "tasks-wire-fields",
  "tasks-request-state-removal",
  "tasks-mrtr-input",
  "tasks-request-headers",
  "tasks-dispatch-and-envelope",
  "tasks-required-task-error",
  "tasks-mrtr-composition",
];

test.each(revisions)("the scenarios of %s end as they must", { timeout: 120_000 }, async (revision) => {
  const report = await runSuite(server?.url ?? "", revision);
  expect(report.faults).toEqual([]);
  expect(report.passed).toBeGreaterThan(40);
  if (revision === "2026-07-28") expect(report.scenarios).toEqual(expect.arrayContaining(taskScenarios));
});
