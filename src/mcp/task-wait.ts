/** Waiting for a task to come to a state, without asking again and again. */
import type { Task } from "../tasks/engine.ts";
import { tasksOf } from "./task-facts.ts";
import type { ToolContext } from "./tool-definition.ts";

/**
 * The task once `until` holds, or as it is after `waitMs` or when the signal aborts.
 *
 * Watches before it looks: whatever changes after the look is heard of. `onChange` sees every state on the way.
 *
 * @throws TransferError `unknown_task`
 */
export async function waitForTask(
  taskId: string,
  context: ToolContext,
  waitMs: number,
  until: (task: Task) => boolean,
  onChange: (task: Task) => void = () => {},
): Promise<Task> {
  const tasks = tasksOf(context);
  const { principal } = context;
  if (waitMs <= 0) return tasks.get(principal, taskId);
  const { signal } = context;
  let last: Task | null = null;
  const { promise, resolve } = Promise.withResolvers<void>();
  const see = (task: Task): void => {
    last = task;
    onChange(task);
    if (until(task)) resolve();
  };
  const unwatch = tasks.watch(principal, taskId, see);
  const onAbort = (): void => resolve();
  const timer = setTimeout(resolve, waitMs);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const first = await tasks.get(principal, taskId);
    // A change that was heard of in the meantime is newer than this look, or the same.
    if (last === null) see(first);
    if (signal.aborted) resolve();
    await promise;
    return last ?? first;
  } finally {
    clearTimeout(timer);
    unwatch();
    signal.removeEventListener("abort", onAbort);
  }
}
