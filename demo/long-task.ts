/** Following a long task as a model does: by asking for it. */
import type { Model } from "./model.ts";

type Answer = Record<string, unknown>;

function fractionOf(answer: Answer): number {
  const progress = answer.progress as { fraction?: number | null } | undefined;
  return progress?.fraction ?? 0;
}

export function progressOf(answer: Answer): string {
  return `${(100 * fractionOf(answer)).toFixed(0)} %`;
}

/** Returns when so much is done, or the task has ended. */
export async function untilProgress(model: Model, taskId: string, fraction: number): Promise<Answer> {
  for (;;) {
    const answer = await model.call("durable_task_get", { taskId });
    if (answer.status !== "working" || fractionOf(answer) >= fraction) return answer;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export async function untilDone(model: Model, taskId: string): Promise<Answer> {
  for (;;) {
    const answer = await model.call("durable_task_get", { taskId, waitMs: 20_000 });
    if (answer.status !== "working") return answer;
  }
}
