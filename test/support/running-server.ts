/** The whole server in this process, on a free loopback port over a folder of its own. */
import { onTestFinished } from "vitest";
import { loadConfig } from "../../src/server/config.ts";
import { createLogger } from "../../src/server/log.ts";
import { type RunningServer, startServer } from "../../src/server/server.ts";
import type { SettingName } from "../../src/server/settings.ts";
import { tempDir } from "./temp-dir.ts";

export interface TestServer extends RunningServer {
  readonly port: number;
  /** Lines of the log so far. */
  readonly lines: readonly string[];
}

/** @param flags as on the command line, without dashes in front: `{ allowedOrigins: "https://a.example" }`. */
export async function startTestServer(flags: Partial<Record<SettingName, string>> = {}): Promise<TestServer> {
  const dataDir = await tempDir();
  const { config } = loadConfig({
    env: {},
    flags: { port: "0", dataDir, fsync: "never", minFreeBytes: "0", log: "debug", ...flags },
  });
  const lines: string[] = [];
  const server = await startServer(
    config,
    createLogger(config.log, (line) => lines.push(line)),
  );
  onTestFinished(() => server.stop());
  const started = lines.find((line) => line.includes('"server.started"')) ?? "{}";
  return { ...server, port: (JSON.parse(started) as { port: number }).port, lines };
}
