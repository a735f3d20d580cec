/** `longshore stdio`: an MCP server on stdin and stdout, until the host closes the pipe. */
import { Writable } from "node:stream";
import { startStdioServer } from "../server/stdio-server.ts";
import type { Run } from "./command-context.ts";
import { nextStopSignal } from "./stop-signals.ts";

export const stdio: Run = async ({ config, logger }) => {
  const output = takeStdout();
  const told = nextStopSignal();
  const server = await startStdioServer(config, logger, { input: process.stdin, output });
  await Promise.race([server.closed, told]);
  await server.stop();
  return 0;
};

/** The only way to the real stdout from now on: a line of anything else would break the protocol, so it goes to stderr. */
function takeStdout(): Writable {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  const output = new Writable({
    write: (chunk: Buffer, _encoding, done) => void write(chunk, done),
  });
  process.stdout.on("error", (error) => output.destroy(error));
  return output;
}
