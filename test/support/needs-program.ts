/**
 * Suites that drive a program which a machine may not have. Without it they are skipped and say so once; with `CI=true`
 * they fail, so that nothing is skipped quietly where everything should run.
 */
import { spawnSync } from "node:child_process";
import { describe, test } from "vitest";

/** `describe` for a suite that runs `program` (which must know `--version`). */
export function describeWithProgram(program: string, name: string, suite: () => void): void {
  const isThere = spawnSync(program, ["--version"], { stdio: "ignore" }).error === undefined;
  if (isThere) describe(name, suite);
  else if (process.env.CI === "true") {
    test(`${name} needs the program ${program}`, () => {
      throw new Error(`${program} is not installed.`);
    });
  } else describe.skip(`${name} (skipped: ${program} is not installed)`, suite);
}
