/** `longshore serve`: the service, until it is told to stop. */
import { fileURLToPath } from "node:url";
import { startServer } from "../server/server.ts";
import { packageVersion } from "../server/version.ts";
import { curlUploadLine } from "../web/curl-upload-line.ts";
import type { Run } from "./command-context.ts";
import { nextStopSignal } from "./stop-signals.ts";

export const serve: Run = async ({ config, logger, json, print }) => {
  if (config.insecure)
    logger.log({
      level: "warn",
      event: "server.insecure",
      message: "Everybody who can reach this server may read, write and delete everything in it.",
    });
  const told = nextStopSignal();
  const server = await startServer(config, logger);
  const { mcpUrl, tusUrl, dataDir } = server;
  if (json) print(JSON.stringify({ mcpUrl, tusUrl, dataDir, pid: process.pid }));
  else
    print(
      [
        `Longshore ${packageVersion()}`,
        "",
        `  MCP URL      ${mcpUrl}`,
        `  tus URL      ${tusUrl}`,
        `  data folder  ${dataDir}`,
        "",
        "Try it from another terminal (this uploads a file and prints its handle and sha256):",
        "",
        `  ${curlUploadLine(server.publicUrl, shellQuoted(sampleFile()))}`,
        "",
        "Ctrl+C stops the server.",
      ].join("\n"),
    );
  await told;
  await server.stop();
  return 0;
};

/** A file that is there wherever the command is pasted: the README of this package. */
function sampleFile(): string {
  return fileURLToPath(new URL("../../README.md", import.meta.url));
}

function shellQuoted(word: string): string {
  return /^[A-Za-z0-9_./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
