/** No operation of tasks walks a whole table: what costs the same at ten tasks costs the same at a million. */
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AnyOperation } from "../../../src/store/state/operation.ts";
import { sqliteQueries } from "../../../src/store/state/sqlite/connection.ts";
import { migrations } from "../../../src/store/state/sqlite/migrations.ts";
import { taskOperations } from "../../../src/store/state/tasks/operations.ts";
import type { TaskState } from "../../../src/tasks/state-store.ts";

let database: DatabaseSync;
let plans: string[] = [];
let work = 0;

beforeEach(() => {
  database = new DatabaseSync(":memory:");
  for (const step of migrations) database.exec(step);
  plans = [];
});
afterEach(() => database.close());

function drive(operation: AnyOperation, args: readonly unknown[]): unknown {
  const steps = operation.run({ db: sqliteQueries, now: Date.now() }, ...(args as never[]));
  let step = steps.next();
  while (step.done !== true) {
    const { sql } = step.value;
    const parameters = step.value.parameters as readonly SQLInputValue[];
    for (const line of database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters)) {
      plans.push(`${String(line.detail)}  <-  ${sql}`);
    }
    work += 1;
    const changesSoFar = () => Number(database.prepare("SELECT total_changes() AS n").get()?.n);
    const before = changesSoFar();
    const rows = database.prepare(sql).all(...parameters);
    step = steps.next({ rows, changes: changesSoFar() - before });
  }
  return step.value;
}

const call = <Name extends keyof TaskState>(
  name: Name,
  ...args: Parameters<TaskState[Name]>
): Awaited<ReturnType<TaskState[Name]>> =>
  drive(taskOperations[name], args) as Awaited<ReturnType<TaskState[Name]>>;

const input = (n: number, more: { principal?: string; owner?: string | null; kind?: string } = {}) => ({
  taskId: `task_${n}`,
  principal: more.principal ?? "ada",
  kind: more.kind ?? "job",
  args: "{}",
  idempotency: { key: `k${n}`, argumentsHash: "a" },
  deadlineMs: 1_000_000,
  ttlMs: 1_000,
  owner: more.owner ?? null,
});

const claimQuery = {
  owner: "p",
  kinds: ["job", "other"],
  limit: 3,
  perPrincipal: 9,
  running: [],
  afterPrincipal: "a",
};

/** An operation of each kind, with a record to work on. */
function everyOperation(): void {
  call("createTask", input(1, { owner: "p" }));
  call("createTask", input(1));
  call("createTask", input(2));
  const lease = { taskId: "task_1", owner: "p", fence: 1 };
  const step = { ...lease, name: "s", kind: "step" as const, dueInMs: null, maxSteps: 10 };
  call("enterStep", step);
  call("enterStep", step);
  call("endStep", { ...lease, name: "s", end: { state: "done", result: "1" } });
  const question = {
    ...lease,
    name: "q",
    inputId: "i",
    prompt: "?",
    choices: ["a"],
    schema: null,
    progress: { message: "m", fraction: 0.5 },
    maxSteps: 10,
  };
  call("askQuestion", question);
  call("setProgress", lease, "m", 0.5);
  call("findTask", "task_1");
  for (const status of [null, "working", "completed"] as const) {
    call("listTasks", { principal: "ada", status, limit: 30, after: { createdAt: 0, taskId: "a" } });
  }
  call("taskVersions", ["task_1", "task_2"]);
  call("answerTask", { taskId: "task_1", inputId: "i", answer: "1" });
  call("answerTask", { taskId: "task_1", inputId: "i", answer: "1" });
  call("takeAnswers", lease, ["q", "s"]);
  call("heldTasks", "p", true);
  call("heldTasks", "p", false);
  call("recordedSteps", "task_1", "", 10);
  call("stepResult", "task_1", "s");
  call("outlook", "z", ["job", "other"]);
  call("releaseTask", lease, { names: ["q"], inMs: 5 });
  expect(call("claimTasks", claimQuery, "{}").claimed).toHaveLength(2);
  call("takeBack", ["p", "q"], 10);
  call("claimTasks", claimQuery, "{}");
  call("cancelTask", "task_2", []);
  call("finishTask", {
    taskId: "task_1",
    owner: "p",
    fence: 5,
    status: "completed",
    result: "1",
    error: null,
  });
  call("cancelTask", "task_2", ["p"]);
  call("sweepTasks", 0, 10);
}

describe("the statements of tasks", () => {
  it("find their rows by an index, and sort none", () => {
    everyOperation();
    expect(plans.length).toBeGreaterThan(60);
    const walks = plans.filter(
      (plan) => /^SCAN/.test(plan) && !/^SCAN task USING (COVERING )?INDEX/.test(plan),
    );
    expect(walks).toEqual([]);
    expect(plans.filter((plan) => plan.includes("TEMP B-TREE"))).toEqual([]);
    // An index that is walked is one of those that hold only what is looked for.
    for (const plan of plans.filter((one) => one.startsWith("SCAN"))) {
      expect(plan).toMatch(
        /INDEX task_(wake|marked|leased|ready|unmarked|unleased_deadline|marked_expiry)\b/,
      );
    }
  });

  it("claim with as much work whether one task waits or ten thousand do, of however many principals", () => {
    const workOfClaim = (): number => {
      work = 0;
      const { claimed } = call("claimTasks", { ...claimQuery, limit: 1 }, "{}");
      expect(claimed).toHaveLength(1);
      return work;
    };
    call("createTask", input(0));
    const alone = workOfClaim();
    for (let n = 1; n <= 2_000; n += 1) {
      call("createTask", input(n, { principal: `principal ${n % 500}`, kind: n % 3 ? "job" : "foreign" }));
    }
    expect(workOfClaim()).toBeLessThanOrEqual(alone);
  });
});
