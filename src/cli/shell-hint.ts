/** Hints are written for models, which have tools; a person at a shell has commands. */

const commands: Readonly<Record<string, string>> = {
  upload_create: "longshore put FILE",
  upload_status: "longshore status HANDLE",
  file_list: "longshore ls",
  file_delete: "longshore rm HANDLE",
  durable_task_list: "longshore tasks",
  durable_task_get: "longshore task ID",
  durable_task_respond: "longshore task ID --respond ANSWER",
  durable_task_cancel: "longshore task ID --cancel",
};

/** A tool's name, what asks to call it, and how long it shall wait. */
const mention = new RegExp(
  `\\b([Cc]all )?(${Object.keys(commands).join("|")})\\b(?: with waitMs(?: \\d+)?)?`,
  "g",
);

/** The hint of a failure with this code, with commands for the tools that have one. JSON keeps the server's words. */
export function shellHint(code: unknown, hint: string): string {
  // What the tool answers there is more than `put` prints.
  if (code === "client_path_not_reachable")
    return "Send the file with 'longshore put FILE', and use the handle that it prints.";
  // Where the tool alone may create uploads, it was `put` that was refused.
  if (code === "unauthorized") return hint;
  return hint.replaceAll(mention, (_mention, call: string | undefined, tool: string) => {
    const verb = call === undefined ? "" : call.startsWith("C") ? "Run " : "run ";
    return `${verb}'${commands[tool]}'`;
  });
}
