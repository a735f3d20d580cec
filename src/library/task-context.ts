/** The context of a task's handler, as users see it. */
import type { TaskContext as EngineContext, StepContext, StepOptions } from "../tasks/engine.ts";

/**
 * What a task's handler works with. It is run again from its start after a crash: whatever is done through the context is recorded, and
 * not done again.
 *
 * @example
 * async ({ url }, ctx: TaskContext) => {
 *   const pages = await ctx.step("list", () => listPages(url));
 *   await ctx.progress(`${pages.length} pages`, 0.1);
 *   const go = await ctx.needInput({ prompt: "All of them?", choices: ["yes", "no"] });
 *   const report = await ctx.files.write("report.txt", pages.join("\n"));
 *   return { go, report: report.handle };
 * }
 */
export interface TaskContext extends Omit<EngineContext, "step"> {
  /**
   * Runs `fn` once: its result is recorded and returned on every later run, and so is its last error, which is thrown again. The result
   * is JSON of up to 1 MiB (else the task fails and says what is not); names are unique within a task, of up to 512 characters. Steps may run side by side.
   *
   * The one step that ran at a crash may run once more, with the same `key`: hand it on where an effect outside must not happen twice.
   *
   * @example
   * const invoice = await ctx.step("charge", ({ key }) => charge(order, { idempotencyKey: key }), { attempts: 3 });
   */
  step<T>(name: string, fn: (step: StepContext) => Promise<T> | T, options?: StepOptions): Promise<T>;
}
