/** The commands over a running server: their arguments, how they find the server, and how their failures are told. */
import type { Command } from "commander";
import { TransferFailure } from "../client/index.ts";
import { ConfigError, remoteSettings } from "../server/config.ts";
import { CommandError } from "./command-context.ts";
import type { RemoteContext, RunRemote } from "./remote-context.ts";
import { ToolFailure } from "./remote-tools.ts";
import { shellHint } from "./shell-hint.ts";

type Given = Readonly<Record<string, unknown>>;

const usageStatus = 2;
const interruptedStatus = 130;

/** @param ended told the exit status. */
export function addRemoteCommands(program: Command, ended: (status: number) => void): void {
  const add = (usage: string, description: string): Command => {
    const [name = "", ...args] = usage.split(" ");
    const command = program
      .command(name)
      .description(description)
      .allowExcessArguments(false)
      .option("--json", "print one line of JSON")
      .option("--url <url>", "base URL of the server (LONGSHORE_URL, default http://127.0.0.1:8484)");
    for (const arg of args) command.argument(arg);
    return command;
  };
  const runs = <Args>(
    command: Command,
    load: () => Promise<RunRemote<Args>>,
    read: (args: string[], given: Given) => Args,
  ) =>
    command.action(async (...all: unknown[]) => {
      const args = all.filter((arg): arg is string => typeof arg === "string");
      const given = command.opts<Given>();
      ended(await runRemote(load, given, read(args, given)));
    });

  runs(
    add(
      "put <file> [url]",
      "send a file; URL is a server's, for a new upload, or that of an upload: the one that an interrupted put prints goes on from there",
    ),
    async () => (await import("./put.ts")).put,
    ([file = "", url]) => ({ file, url }),
  );
  runs(
    add("get <url> [file]", "fetch a file from a download URL, resuming where an earlier try ended").option(
      "--force",
      "replace a file that exists",
    ),
    async () => (await import("./get.ts")).get,
    ([url = "", file], { force }) => ({ url, file, force: force === true }),
  );
  runs(
    add("status <handle>", "tell the state of an upload or a file"),
    async () => (await import("./file-commands.ts")).status,
    ([handle = ""]) => ({ handle }),
  );
  runs(
    add("ls", "list uploads and files"),
    async () => (await import("./file-commands.ts")).ls,
    () => ({}),
  );
  runs(
    add("rm <handle>", "delete a file, or give up an upload"),
    async () => (await import("./file-commands.ts")).rm,
    ([handle = ""]) => ({ handle }),
  );
  runs(
    add("tasks", "list tasks"),
    async () => (await import("./task-commands.ts")).tasks,
    () => ({}),
  );
  runs(
    add(
      "task <id>",
      "follow a task to its end; ends with 1 where it failed, with 3 where it waits for an answer",
    )
      .option("--respond <answer>", "answer its open question first")
      .option("--cancel", "cancel it first"),
    async () => (await import("./task-commands.ts")).task,
    ([taskId = ""], { respond, cancel }) => ({
      taskId,
      respond: typeof respond === "string" ? respond : undefined,
      cancel: cancel === true,
    }),
  );
}

async function runRemote<Args>(
  load: () => Promise<RunRemote<Args>>,
  given: Given,
  args: Args,
): Promise<number> {
  const json = given.json === true;
  const print = (line: string): void => void process.stdout.write(`${line}\n`);
  const note = (line: string): void => void process.stderr.write(`${line}\n`);
  const stopping = new AbortController();
  const onSignal = (): void => {
    stopping.abort(new Interrupted());
    // The second one ends the process at once.
    process.once("SIGINT", () => process.exit(interruptedStatus));
  };
  process.once("SIGINT", onSignal);
  try {
    const { url, key } = remoteSettings(typeof given.url === "string" ? given.url : undefined);
    const context: RemoteContext = { url, key, json, print, note, signal: stopping.signal };
    return await (await load())(context, args);
  } catch (thrown) {
    if (thrown instanceof Interrupted) return interruptedStatus;
    const error = errorIn(thrown);
    if (json) print(JSON.stringify({ status: "failed", error }));
    else {
      note(String(error.message));
      if (typeof error.recoveryHint === "string") note(shellHint(error.code, error.recoveryHint));
    }
    return thrown instanceof ConfigError ? usageStatus : 1;
  } finally {
    process.off("SIGINT", onSignal);
  }
}

class Interrupted extends Error {
  override readonly name = "Interrupted";
}

/** In the form of a failed tool call. */
function errorIn(thrown: unknown): { readonly [member: string]: unknown } {
  if (thrown instanceof ToolFailure) return thrown.error;
  if (thrown instanceof TransferFailure) {
    const { code, message, retryable, recoveryHint, cursor } = thrown;
    return {
      code,
      message,
      retryable,
      ...(recoveryHint !== null && { recoveryHint }),
      ...(cursor !== null && { partial: { cursor } }),
    };
  }
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return {
    code: thrown instanceof CommandError ? "invalid_param" : "internal_error",
    message,
    retryable: false,
  };
}
