/**
 * A process that runs a task without end, to be killed. Argument: the data folder. Says `ready` once it takes tasks, and `runs` when the
 * step that never ends runs here; ends when its standard input does.
 */
import { openStore } from "longshore/tasks";

const [dataDir = "."] = process.argv.slice(2);
const say = (line: string): void => void process.stdout.write(`${line}\n`);

process.stdin.resume();
process.stdin.once("end", () => process.exit());

const { tasks } = await openStore(dataDir);
tasks.register({
  kind: "held",
  async handler(_args, context) {
    // A task that never comes any further is given up after some crashes.
    await context.step(`come to ${process.pid}`, () => {});
    await context.step("held", () => {
      say("runs");
      return new Promise<void>(() => {});
    });
  },
});
say("ready");
