/**
 * The commands, their flags and their exit status: 0 done, 1 it could not be done, 2 the command line or the settings are
 * wrong and nothing was started.
 */
import { Command, CommanderError } from "commander";
import { TransferError, toEnvelope } from "../errors.ts";
import { ConfigError, loadConfig } from "../server/config.ts";
import { ListenError } from "../server/listen-error.ts";
import { createLogger } from "../server/log.ts";
import { nearestName } from "../server/nearest-name.ts";
import { packageVersion } from "../server/version.ts";
import { CommandError, type Run } from "./command-context.ts";
import { addRemoteCommands } from "./remote-commands.ts";
import { addSettingFlags, type Concern, settingFlagsOf } from "./setting-flags.ts";

const usageStatus = 2;

/** Never rejects. */
export async function run(args: readonly string[]): Promise<number> {
  let status = 0;
  const json = asksForJson(args);
  const program = new Command("longshore")
    .description("Moves large files for MCP servers: the model holds handles, the bytes go over HTTP.")
    .version(packageVersion())
    .exitOverride()
    .configureOutput({ outputError: (text, write) => (json ? undefined : write(text)) });
  // A command is loaded when it runs: help and faults need not wait for a server's modules.
  const add = (name: string, description: string, concern: Concern, load: () => Promise<Run>): void => {
    const flags = program
      .command(name, { isDefault: name === "serve" })
      .description(description)
      .allowExcessArguments(false)
      .option("--json", "print one line of JSON");
    addSettingFlags(flags, concern);
    flags.action(async (given: Record<string, unknown>) => {
      status = await runCommand(load, given);
    });
  };
  add("serve", "run the service", "everything", async () => (await import("./serve.ts")).serve);
  add(
    "stdio",
    "an MCP server on stdin and stdout, for desktop hosts; its files are reached on a loopback port of its own",
    "store",
    async () => (await import("./stdio.ts")).stdio,
  );
  addRemoteCommands(program, (ended) => {
    status = ended;
  });
  add(
    "sweep",
    "remove what has expired (a server does it every few minutes)",
    "store",
    async () => (await import("./sweep.ts")).sweep,
  );
  add(
    "verify",
    "read every stored file again and compare size and digest; repairs nothing, ends with 1 if a file is bad",
    "store",
    async () => (await import("./verify.ts")).verify,
  );

  const names = [...program.commands.map((command) => command.name()), "help"];
  // `help` itself would show all commands for one that there is not, and in no form that a program can read.
  const first = args[0] === "help" ? args.slice(1).find((arg) => !arg.startsWith("-")) : args[0];
  if (first !== undefined && !first.startsWith("-") && !names.includes(first)) {
    const nearest = nearestName(first, names);
    const hint = nearest === null ? `Commands: ${names.join(", ")}.` : `Did you mean ${nearest}?`;
    const text = `error: unknown command '${first}'. ${hint}`;
    if (json) print(JSON.stringify(misuse(text)));
    else complain(text);
    return usageStatus;
  }
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) throw thrown;
    // Help and version are thrown too, with status 0. Without --json, the rest has been told on stderr by then.
    if (thrown.exitCode === 0) return 0;
    if (json) print(JSON.stringify(misuse(thrown.message)));
    return usageStatus;
  }
  return status;
}

/** Asked of the words as they stand: where they are wrong, no command has read them. */
function asksForJson(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return args.slice(0, end === -1 ? args.length : end).includes("--json");
}

/** What is said of a wrong command line, in the form of a failed tool call. */
function misuse(text: string): object {
  const message = text.replace(/^error: /, "").replaceAll("\n", " ");
  return toEnvelope(
    new TransferError("invalid_param", message, {
      recoveryHint: "'longshore help COMMAND' tells the arguments of a command.",
    }),
  );
}

async function runCommand(
  load: () => Promise<Run>,
  given: Readonly<Record<string, unknown>>,
): Promise<number> {
  const json = given.json === true;
  try {
    const { config, warnings } = loadConfig({
      flags: settingFlagsOf(given),
      configFile: typeof given.config === "string" ? given.config : undefined,
    });
    const logger = createLogger(config.log);
    for (const message of warnings) logger.log({ level: "warn", event: "config.unknown", message });
    const command = await load();
    return await command({ config, logger, json, print });
  } catch (thrown) {
    if (json) print(JSON.stringify(toEnvelope(failureOf(thrown))));
    else complain(textOf(thrown));
    return thrown instanceof ConfigError ? usageStatus : 1;
  }
}

function failureOf(thrown: unknown): TransferError {
  if (thrown instanceof ConfigError)
    return new TransferError("invalid_param", "The settings are wrong; nothing was started.", {
      recoveryHint: "Correct every setting in faults and run the command again.",
      extra: { faults: thrown.faults },
    });
  if (thrown instanceof ListenError || thrown instanceof CommandError)
    return new TransferError("invalid_param", thrown.message);
  // Nobody else than the operator reads this: the cause is what helps.
  return thrown instanceof TransferError ? thrown : new TransferError("internal_error", textOf(thrown));
}

function textOf(thrown: unknown): string {
  if (thrown instanceof ConfigError)
    return [
      "The settings are wrong; nothing was started.",
      ...thrown.faults.map((fault) => `  ${fault}`),
    ].join("\n");
  // The person at the terminal is the operator: the cause is what helps here.
  if (thrown instanceof TransferError) {
    const { cause } = thrown.options;
    return `${thrown.message}${cause instanceof Error ? ` (${cause.message})` : ""}`;
  }
  return thrown instanceof Error ? thrown.message : String(thrown);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function complain(text: string): void {
  process.stderr.write(`${text}\n`);
}
