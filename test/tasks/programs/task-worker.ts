/**
 * A process with handlers, to be killed and stopped by tests. Arguments: the data folder, and a file that every handler appends to what
 * it does. Says `ready` once it takes tasks; ends when its standard input does. At the word `hold` it says `held`, and its thread stops for
 * good where it is.
 */
import { appendFileSync, existsSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openStore } from "../../../src/store/open-store.ts";
import type { JsonValue } from "../../../src/tasks/engine.ts";

const [dataDir = "", journal = ""] = process.argv.slice(2);
const note = (...words: readonly (string | number)[]): void =>
  appendFileSync(journal, `${words.join(" ")}\n`);
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const store = await openStore({
  dataDir,
  fsync: "never",
  limits: {
    maxFileBytes: 2 ** 40,
    inlineChunkBytes: 262_144,
    inlineFileBytes: 4_194_304,
    uploadTtlMs: 86_400_000,
    fileTtlMs: null,
    downloadTtlMs: 3_600_000,
  },
  quota: { maxBytes: null, maxFiles: null },
  minFreeBytes: 0,
  log: ({ level, event, ...rest }) => {
    if (level === "error") process.stderr.write(`${event} ${JSON.stringify(rest)}\n`);
  },
});
const { tasks } = store;

/**
 * Ten steps with a question in the middle. Each step notes who runs it with which key, and takes a moment; those that are gated last until
 * there is a file of their name.
 */
tasks.register({
  kind: "ten-steps",
  restart: "whole",
  handler: async (args, context) => {
    const { stepMs, gated, gates } = args as { stepMs: number; gated: readonly number[]; gates: string };
    note("run", process.pid);
    const step = (n: number) =>
      context.step(`step ${n}`, async ({ key }) => {
        note(`step-${n}`, process.pid, key);
        await sleep(stepMs);
        while (gated.includes(n) && !existsSync(path.join(gates, `step-${n}`))) await sleep(20);
        return n * n;
      });
    const squares: number[] = [];
    for (let n = 1; n <= 5; n += 1) squares.push(await step(n));
    note("asks", process.pid);
    const answer = await context.needInput({ prompt: "Go on?", choices: ["yes", "no"] });
    note("answered", process.pid, String(answer));
    for (let n = 6; n <= 10; n += 1) squares.push(await step(n));
    return { answer, squares };
  },
});

/** Notes its begin and its end. */
tasks.register({
  kind: "once",
  handler: async (_args, context) => {
    note("begin", context.taskId, process.pid);
    await context.step("work", () => sleep(1).then(() => {}));
    note("end", context.taskId, process.pid);
    return process.pid;
  },
});

/** Its first step is quick; its second lasts until a file is there. */
tasks.register({
  kind: "held",
  handler: async (args: JsonValue, context) => {
    const { until } = args as { until: string };
    context.signal.addEventListener("abort", () =>
      note("aborted", process.pid, context.signal.reason.reason),
    );
    await context.step("quick", () => note("quick", process.pid));
    const by = await context.step("slow", async ({ key }) => {
      note("slow", process.pid, key);
      while (!existsSync(until)) await sleep(20);
      return process.pid;
    });
    await context.step("last", () => note("last", process.pid));
    return { by };
  },
});

/** A step that keeps its thread to itself for longer than others wait for a sign of life. */
tasks.register({
  kind: "blocking",
  handler: async (args: JsonValue, context) => {
    const { ms } = args as { ms: number };
    await context.step("blocks", () => {
      note("blocks", process.pid);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    });
    return process.pid;
  },
});

process.stdin.setEncoding("utf8").on("data", (word) => {
  if (String(word) !== "hold") return;
  // Comes after all that was asked of the store before.
  void tasks.sweep().then(() => {
    say("held");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });
});
process.stdin.once("end", () => void store.close().then(() => process.exit(0)));
say("ready");
