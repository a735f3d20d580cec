/** `longshore tasks` and `task ID`: the tasks on a running server. */
import { allRows, text } from "./file-commands.ts";
import type { RemoteContext, RunRemote } from "./remote-context.ts";
import { callTool, type Facts } from "./remote-tools.ts";

export interface TaskArguments {
  readonly taskId: string;
  /** Answers the open question first. */
  readonly respond?: string | undefined;
  readonly cancel: boolean;
}

/** A question is open that only a person can answer. */
const waitsStatus = 3;

export const tasks: RunRemote<Facts> = async (context) => {
  const rows = await allRows(context, "durable_task_list", "tasks");
  if (context.json) context.print(JSON.stringify({ tasks: rows }));
  else if (rows.length === 0) context.note("There are no tasks.");
  else
    for (const { taskId, status, kind, progress, question, error } of rows)
      context.print(
        `${text(taskId)}  ${text(status).padEnd(14)}  ${text(kind)}  ${text(question ?? error ?? progress ?? "")}`.trimEnd(),
      );
  return 0;
};

/** Status 0 where it completed, 1 where it failed or was cancelled, 3 where it waits for an answer. */
export const task: RunRemote<TaskArguments> = async (context, { taskId, respond, cancel }) => {
  if (respond !== undefined) await callTool(context, "durable_task_respond", { taskId, response: respond });
  if (cancel) await callTool(context, "durable_task_cancel", { taskId });
  const { nextStep: _forModels, ...facts } = await follow(context, taskId);
  const { status, result, error, inputRequest } = facts;
  if (context.json) context.print(JSON.stringify(facts));
  else if (status === "input_required") tellQuestion(context, taskId, inputRequest as Facts);
  else if (status === "completed")
    context.print(result === undefined ? "completed" : JSON.stringify(result, null, 2));
  else context.note(`${text(status)}${error === undefined ? "" : `: ${text((error as Facts).message)}`}`);
  if (status === "input_required") return waitsStatus;
  return status === "completed" ? 0 : 1;
};

async function follow(context: RemoteContext, taskId: string): Promise<Facts> {
  const line = liveLine();
  try {
    for (;;) {
      // Short, so that the line is alive: the call returns early on a change of status only.
      const facts = await callTool(context, "durable_task_get", { taskId, waitMs: 1_000 });
      const { status, progress, cancelRequested } = facts;
      const isStopping = cancelRequested === true;
      if (status !== "working" && !(status === "input_required" && isStopping)) return facts;
      line.show(isStopping ? "being cancelled" : progressText(progress as Facts | undefined));
    }
  } finally {
    line.end();
  }
}

function progressText(progress: Facts | undefined): string {
  if (progress === undefined) return "working";
  const { message, fraction } = progress;
  return typeof fraction === "number" ? `${Math.floor(fraction * 100)} %  ${text(message)}` : text(message);
}

function tellQuestion({ print, note }: RemoteContext, taskId: string, question: Facts): void {
  print(text(question.prompt));
  if (Array.isArray(question.choices)) print(`Choices: ${question.choices.map(text).join(", ")}`);
  note(`Answer it with: longshore task ${taskId} --respond ANSWER`);
}

/** One line on a terminal that is written over again and again; elsewhere each change is a line. */
function liveLine(): { show(shown: string): void; end(): void } {
  const { stderr } = process;
  let last = "";
  return {
    show(shown) {
      if (shown === last) return;
      last = shown;
      stderr.write(stderr.isTTY ? `\r\u001b[K${shown.slice(0, (stderr.columns ?? 80) - 1)}` : `${shown}\n`);
    },
    end() {
      if (last !== "" && stderr.isTTY) stderr.write("\r\u001b[K");
    },
  };
}
