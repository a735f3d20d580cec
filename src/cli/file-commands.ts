/** `longshore status HANDLE`, `ls` and `rm HANDLE`: the files on a running server. */
import { shownBytes } from "./progress-bar.ts";
import type { RemoteContext, RunRemote } from "./remote-context.ts";
import { callTool, type Facts } from "./remote-tools.ts";

export const status: RunRemote<{ readonly handle: string }> = async (context, { handle }) => {
  const { nextStep: _forModels, ...facts } = await callTool(context, "upload_status", { handle });
  if (context.json) context.print(JSON.stringify(facts));
  else for (const [name, value] of Object.entries(facts)) context.print(`${name.padEnd(12)} ${text(value)}`);
  return 0;
};

export const ls: RunRemote<Facts> = async (context) => {
  const files = await allRows(context, "file_list", "files");
  if (context.json) context.print(JSON.stringify({ files }));
  else if (files.length === 0) context.note("Nothing is here.");
  else
    for (const { handle, status: state, offset, size, filename } of files)
      context.print(
        `${text(handle)}  ${text(state).padEnd(9)}  ${extent(offset, size).padStart(22)}  ${text(filename ?? "")}`,
      );
  return 0;
};

export const rm: RunRemote<{ readonly handle: string }> = async (context, { handle }) => {
  const { nextStep: _forModels, ...facts } = await callTool(context, "file_delete", { handle });
  if (context.json) context.print(JSON.stringify(facts));
  else context.print(`${handle} is deleted.`);
  return 0;
};

/** Every page of a list. */
export async function allRows(context: RemoteContext, tool: string, member: string): Promise<Facts[]> {
  const rows: Facts[] = [];
  let cursor: unknown;
  do {
    const page = await callTool(context, tool, cursor === undefined ? {} : { cursor });
    rows.push(...(page[member] as Facts[]));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return rows;
}

function extent(offset: unknown, size: unknown): string {
  const total = typeof size === "number" ? shownBytes(size) : "?";
  return offset === size ? total : `${shownBytes(Number(offset))} of ${total}`;
}

/** Names come from anybody: nothing in them may move the cursor of a terminal. */
export function text(value: unknown): string {
  const shown = typeof value === "string" ? value : JSON.stringify(value);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is taken out here
  return shown.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, "?");
}
