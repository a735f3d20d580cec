/** Another process that holds the state store locked, as a stopped backup or a forgotten shell would. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";

const script = `
const { DatabaseSync } = require("node:sqlite");
const database = new DatabaseSync(process.argv[1], { timeout: 10000 });
database.exec("BEGIN IMMEDIATE");
console.log("locked");
process.stdin.resume().on("end", () => {
  database.exec("ROLLBACK");
  database.close();
});
`;

/** Resolves once the lock is held; `release` resolves once it is free again. */
export async function lockStore(dataDir: string): Promise<{ release(): Promise<void> }> {
  const child = spawn(process.execPath, ["-e", script, path.join(dataDir, "state.sqlite")], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const release = async (): Promise<void> => {
    child.stdin.end();
    await exited;
  };
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  for await (const line of createInterface({ input: child.stdout })) {
    if (line === "locked") return { release };
  }
  throw new Error("the store could not be locked");
}
