import path from "node:path";
import { defineConfig } from "vitest/config";

// Each test opens stores of its own, and each store has two threads that load their modules anew: compiled once, that takes a third less.
process.env.NODE_COMPILE_CACHE ??= path.join(import.meta.dirname, "node_modules/.cache/node-compile");

/** Suites that start the built binary, brokers or other processes: they come after the others. */
const heavy = ["test/e2e/**/*.test.ts", "test/faults/**/*.test.ts", "test/conformance/**/*.test.ts"];

export default defineConfig({
  test: {
    testTimeout: 60_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: heavy,
          // More than two cores need: many of them wait for processes that they started.
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "e2e",
          include: heavy,
          // The same: each waits for processes of its own most of the time.
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
