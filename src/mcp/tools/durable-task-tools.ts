/** The tools that follow tasks, whatever started them, in the order in which they are listed. */
import type { ToolDefinition } from "../tool-definition.ts";
import { durableTaskCancel } from "./durable-task-cancel.ts";
import { durableTaskGet } from "./durable-task-get.ts";
import { durableTaskList } from "./durable-task-list.ts";
import { durableTaskRespond } from "./durable-task-respond.ts";

export const durableTaskTools: readonly ToolDefinition[] = [
  durableTaskGet,
  durableTaskRespond,
  durableTaskCancel,
  durableTaskList,
];
