/**
 * The contract of TaskState: the promises of `src/tasks/state-store.ts`, for any backend. A backend's own tests call this with a way to
 * open an empty store twice.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AskQuestion, Lease, NewTask, TaskState } from "../../src/tasks/state-store.ts";

export interface TaskStateUnderTest {
  readonly state: TaskState;
  /** The same store, as another process has it. */
  readonly other: TaskState;
  /** As if this long had passed. */
  passTime(ms: number): Promise<void>;
  /** Ids of all tasks there are. */
  taskIds(): Promise<string[]>;
  cleanup(): Promise<void>;
}

const hour = 3_600_000;
const maxSteps = 100;
const deadlineError = '{"code":"task_interrupted"}';

let made = 0;
function newTask(more: Partial<NewTask> = {}): NewTask {
  made += 1;
  return {
    taskId: `task_${String(made).padStart(32, "0")}`,
    principal: "local",
    kind: "job",
    args: "{}",
    idempotency: null,
    deadlineMs: null,
    ttlMs: 24 * hour,
    owner: null,
    ...more,
  };
}

export function taskStateContract(name: string, open: () => Promise<TaskStateUnderTest>): void {
  describe(`TaskState over ${name}`, () => {
    let current: TaskStateUnderTest | null = null;
    const under = (): TaskStateUnderTest => {
      if (current === null) throw new Error("The store is open within a test only");
      return current;
    };
    beforeEach(async () => {
      current = await open();
    });
    afterEach(async () => {
      await current?.cleanup();
      current = null;
    });

    async function create(more: Partial<NewTask> = {}): Promise<string> {
      const outcome = await under().state.createTask(newTask(more));
      if (outcome.kind !== "created") throw new Error(`not created: ${outcome.kind}`);
      return outcome.task.taskId;
    }

    const claim = async (
      owner: string,
      more: { limit?: number; kinds?: string[]; perPrincipal?: number; after?: string } = {},
    ) =>
      under().state.claimTasks(
        {
          owner,
          kinds: more.kinds ?? ["job"],
          limit: more.limit ?? 10,
          perPrincipal: more.perPrincipal ?? 10,
          running: [],
          afterPrincipal: more.after ?? "",
        },
        deadlineError,
      );

    async function held(more: Partial<NewTask> = {}): Promise<Lease> {
      const taskId = await create({ ...more, owner: "p_one" });
      return { taskId, owner: "p_one", fence: 1 };
    }

    const find = async (taskId: string) => {
      const found = await under().state.findTask(taskId);
      if (found === null) throw new Error(`There is no ${taskId}`);
      return found.task;
    };

    const ask = (lease: Lease, question: string, progress: AskQuestion["progress"] = null) =>
      under().state.askQuestion({
        ...lease,
        name: question,
        inputId: `input_${question}`,
        prompt: `${question}?`,
        choices: ["yes", "no"],
        schema: null,
        progress,
        maxSteps,
      });
    const enter = (
      lease: Lease,
      step: string,
      kind: "step" | "sleep" | "file" = "step",
      dueInMs: number | null = null,
    ) => under().state.enterStep({ ...lease, name: step, kind, dueInMs, maxSteps });

    describe("a new task", () => {
      it("is found whole in every process, ready for whoever has its kind", async () => {
        const taskId = await create({ principal: "ann", args: '{"a":1}', deadlineMs: hour });
        const { task, now } = (await under().other.findTask(taskId)) ?? {};
        expect(task).toMatchObject({
          taskId,
          principal: "ann",
          kind: "job",
          status: "working",
          progress: null,
          questions: [],
          result: null,
          error: null,
          cancelRequested: false,
          leaseOwner: null,
          endedAt: null,
          expiresAt: null,
        });
        expect((task?.deadlineAt ?? 0) - (task?.createdAt ?? 0)).toBe(hour);
        expect(now).toBeGreaterThanOrEqual(task?.createdAt ?? Number.POSITIVE_INFINITY);
        expect((await claim("p_two", { kinds: ["other"] })).claimed).toEqual([]);
        const { claimed } = await claim("p_two");
        expect(claimed).toMatchObject([
          {
            args: '{"a":1}',
            ranBefore: false,
            steps: 0,
            crashes: 0,
            task: { taskId, leaseOwner: "p_two", fence: 1 },
          },
        ]);
      });

      it("with an owner is its owner's from the start", async () => {
        const lease = await held();
        expect(await find(lease.taskId)).toMatchObject({ leaseOwner: "p_one", fence: 1 });
        expect((await claim("p_two")).claimed).toEqual([]);
      });

      it("never takes the place of another of its id", async () => {
        const input = newTask();
        await under().state.createTask(input);
        expect(await under().state.createTask(input)).toEqual({ kind: "taken" });
      });

      it("with a known key is the earlier one while that is not past its time, and a conflict with other arguments", async () => {
        const { state, passTime } = under();
        const keyed = (argumentsHash: string, more: Partial<NewTask> = {}) =>
          state.createTask(
            newTask({ idempotency: { key: "k", argumentsHash }, ttlMs: hour, owner: "p_one", ...more }),
          );
        const first = await keyed("a");
        if (first.kind !== "created") throw new Error(first.kind);
        const lease = { taskId: first.task.taskId, owner: "p_one", fence: 1 };
        expect(await keyed("a")).toMatchObject({ kind: "existing", task: { taskId: lease.taskId } });
        expect(await keyed("b")).toEqual({ kind: "conflict" });
        expect(await keyed("b", { principal: "other" })).toMatchObject({ kind: "created" });
        expect(await keyed("b", { kind: "other" })).toMatchObject({ kind: "created" });
        await state.finishTask({ ...lease, status: "completed", result: "1", error: null });
        expect(await keyed("a")).toMatchObject({ kind: "existing", task: { result: "1" } });
        await passTime(hour + 1);
        expect(await keyed("b")).toMatchObject({ kind: "created" });
        expect(await keyed("a")).toEqual({ kind: "conflict" });
      });
    });

    describe("claims", () => {
      it("of two processes at once never give one task to both", async () => {
        const ids = await Promise.all(Array.from({ length: 60 }, () => create()));
        const { state, other } = under();
        const query = { kinds: ["job"], limit: 7, perPrincipal: 100, running: [], afterPrincipal: "" };
        const got = await Promise.all(
          Array.from({ length: 20 }, (_, n) =>
            (n % 2 ? state : other).claimTasks({ ...query, owner: n % 2 ? "p_one" : "p_two" }, deadlineError),
          ),
        );
        const claimed = got.flatMap((one) => one.claimed.map(({ task }) => task.taskId));
        expect(claimed).toHaveLength(60);
        expect(new Set(claimed)).toEqual(new Set(ids));
      });

      it("let principals take turns, from the one after the last, each with its oldest, and keep to the share of each", async () => {
        const ids = new Map<string, string[]>();
        for (const principal of ["ann", "ann", "ann", "bob", "cid", "cid"]) {
          ids.set(principal, [
            ...(ids.get(principal) ?? []),
            await create({ principal, kind: principal === "cid" ? "more" : "job" }),
          ]);
        }
        const turn = async (limit: number, after: string) => {
          const { claimed, lastPrincipal } = await claim("p", {
            limit,
            after,
            kinds: ["job", "more"],
            perPrincipal: 2,
          });
          return [
            claimed.map(({ task }) => task.principal).join(" "),
            lastPrincipal,
            claimed[0]?.task.taskId,
          ];
        };
        expect(await turn(2, "ann")).toEqual(["bob cid", "cid", ids.get("bob")?.[0]]);
        expect(await turn(3, "cid")).toEqual(["ann cid ann", "ann", ids.get("ann")?.[0]]);
        const full = await under().state.claimTasks(
          {
            owner: "p",
            kinds: ["job"],
            limit: 5,
            perPrincipal: 2,
            running: [{ principal: "ann", tasks: 2 }],
            afterPrincipal: "",
          },
          deadlineError,
        );
        expect(full.claimed).toEqual([]);
      });

      it("leave what is ended, parked or held alone", async () => {
        const { state } = under();
        const lease = await held();
        await state.finishTask({ ...lease, status: "completed", result: null, error: null });
        await state.releaseTask(await held(), { names: [], inMs: hour });
        await held();
        expect((await claim("p_two")).claimed).toEqual([]);
        expect(await state.outlook("p_two", ["job"])).toMatchObject({
          ready: false,
          foreignOwners: ["p_one"],
        });
      });
    });

    describe("the outlook", () => {
      it("tells what is ready of these kinds, who else holds tasks, and when the next is due", async () => {
        const { state, passTime } = under();
        expect(await state.outlook("p", ["job"])).toMatchObject({
          ready: false,
          nextDueAt: null,
          foreignOwners: [],
        });
        await create({ kind: "other", deadlineMs: 3 * hour });
        const first = await state.outlook("p", ["job"]);
        expect(first).toMatchObject({ ready: false });
        expect((first.nextDueAt ?? 0) - first.now).toBeGreaterThan(2 * hour);
        const lease = await held();
        await held({ owner: "p_one" });
        await state.releaseTask(lease, { names: [], inMs: hour });
        const second = await state.outlook("p_one", ["job"]);
        expect(second).toMatchObject({ ready: false, foreignOwners: [] });
        expect((second.nextDueAt ?? 0) - second.now).toBeLessThanOrEqual(hour);
        expect(await state.outlook("p_two", [])).toMatchObject({ foreignOwners: ["p_one"] });
        await passTime(hour);
        expect((await state.outlook("p_two", ["job"])).ready).toBe(true);
        expect((await claim("p_two")).claimed).toMatchObject([
          { ranBefore: true, task: { taskId: lease.taskId } },
        ]);
      });

      it("has due deadlines in it, and a claim ends those tasks", async () => {
        const { state, passTime } = under();
        const waits = await create({ kind: "other", deadlineMs: hour });
        const leased = await held({ deadlineMs: hour });
        await passTime(hour);
        expect((await state.outlook("p", ["job"])).ready).toBe(true);
        await claim("p", { limit: 0 });
        expect(await find(waits)).toMatchObject({ status: "failed", error: deadlineError });
        // The holder of the other one has to see to it.
        expect(await find(leased.taskId)).toMatchObject({ status: "working" });
      });
    });

    describe("a lease", () => {
      it("that is another's by now changes nothing by any method", async () => {
        const { state, other } = under();
        const lease = await held();
        await enter(lease, "s");
        await ask(lease, "q");
        expect(await other.takeBack(["p_one"], 10)).toBe(1);
        const [claimed] = (await claim("p_two")).claimed;
        expect(claimed).toMatchObject({ ranBefore: true, steps: 2, crashes: 1, task: { fence: 3 } });
        const before = await find(lease.taskId);
        for (const stale of [lease, { ...lease, fence: 3 }, { ...lease, owner: "p_two", fence: 2 }]) {
          expect(await enter(stale, "new")).toEqual({ kind: "fenced" });
          expect(await state.endStep({ ...stale, name: "s", end: { state: "done", result: "1" } })).toEqual({
            kind: "fenced",
          });
          expect(await ask(stale, "q2")).toEqual({ kind: "fenced" });
          expect(await state.setProgress(stale, "x", 1)).toBe(false);
          expect(await state.releaseTask(stale, "now")).toBe(false);
          expect(
            await state.finishTask({ ...stale, status: "completed", result: "1", error: null }),
          ).toBeNull();
        }
        expect(await find(lease.taskId)).toEqual(before);
        expect(await state.recordedSteps(lease.taskId, "", 10)).toMatchObject([
          { name: "q" },
          { name: "s", state: "entered" },
        ]);
      });

      it("of an ended task is none", async () => {
        const { state } = under();
        const lease = await held();
        await state.finishTask({ ...lease, status: "failed", result: null, error: "{}" });
        expect(await enter(lease, "s")).toEqual({ kind: "fenced" });
        expect(
          await state.finishTask({ ...lease, status: "completed", result: null, error: null }),
        ).toBeNull();
      });

      it("given back makes the task ready, and one that was never begun counts so again", async () => {
        const { state } = under();
        expect(await state.releaseTask(await held(), "untouched")).toBe(true);
        expect((await claim("p_two")).claimed).toMatchObject([{ ranBefore: false }]);
        expect(await state.releaseTask(await held(), "now")).toBe(true);
        expect((await claim("p_two")).claimed).toMatchObject([{ ranBefore: true, crashes: 0 }]);
      });

      it("of many tasks is told to its owner: all, or those that were called", async () => {
        const { state } = under();
        const leases = [await held(), await held(), await held()] as const;
        await ask(leases[1], "q");
        await state.answerTask({ taskId: leases[1].taskId, inputId: "input_q", answer: "1" });
        await state.cancelTask(leases[2].taskId, []);
        expect(await state.heldTasks("p_one", false)).toHaveLength(3);
        const called = await state.heldTasks("p_one", true);
        expect(new Map(called.map((one) => [one.taskId, one.cancelRequested]))).toEqual(
          new Map([
            [leases[1].taskId, false],
            [leases[2].taskId, true],
          ]),
        );
        expect(await state.takeAnswers(leases[1], ["q", "other"])).toEqual([{ name: "q", answer: "1" }]);
        expect(await state.heldTasks("p_one", true)).toHaveLength(1);
        expect(await state.heldTasks("p_two", false)).toEqual([]);
      });
    });

    describe("a step", () => {
      it("is recorded when it is entered, counted when it is entered again, and returned once it is done", async () => {
        const { state } = under();
        const lease = await held();
        expect(await enter(lease, "s")).toMatchObject({
          kind: "ok",
          step: { state: "entered", entries: 1, failures: 0, dueAt: null },
        });
        expect(await enter(lease, "s")).toMatchObject({ step: { entries: 2 } });
        expect(
          await state.endStep({ ...lease, name: "s", end: { state: "done", result: '"r"' } }),
        ).toMatchObject({ kind: "ok" });
        const done = { name: "s", kind: "step", state: "done", entries: 2, failures: 0, result: '"r"' };
        expect(await enter(lease, "s")).toMatchObject({ step: done });
        // Told twice, recorded once.
        expect(
          await state.endStep({ ...lease, name: "s", end: { state: "done", result: '"other"' } }),
        ).toMatchObject({ kind: "ok" });
        expect(await state.recordedSteps(lease.taskId, "", 10)).toMatchObject([done]);
        expect(await enter(lease, "s", "sleep", 5)).toEqual({ kind: "other_kind", recorded: "step" });
        expect(await ask(lease, "s")).toEqual({ kind: "other_kind", recorded: "step" });
      });

      it("that is to be tried again says when, and its failures are counted", async () => {
        const { state } = under();
        const lease = await held();
        await enter(lease, "s");
        await state.endStep({ ...lease, name: "s", end: { state: "again", inMs: hour } });
        const [step] = await state.recordedSteps(lease.taskId, "", 10);
        expect(step).toMatchObject({ state: "entered", failures: 1 });
        expect(step?.dueAt).toBeGreaterThan(Date.now());
        expect(await enter(lease, "s")).toMatchObject({ step: { entries: 2, failures: 1, dueAt: null } });
        await state.endStep({ ...lease, name: "s", end: { state: "failed", error: '{"e":1}' } });
        expect(await enter(lease, "s")).toMatchObject({
          step: { state: "failed", failures: 2, result: '{"e":1}' },
        });
      });

      it("that sleeps has one end however often it is entered", async () => {
        const lease = await held();
        const first = await enter(lease, "z", "sleep", hour);
        const again = await enter(lease, "z", "sleep", 5 * hour);
        if (first.kind !== "ok" || again.kind !== "ok") throw new Error("not entered");
        expect((first.step.dueAt ?? 0) - first.now).toBe(hour);
        expect(again.step.dueAt).toBe(first.step.dueAt);
      });

      it("beyond the limit is refused, and those there are can still be entered", async () => {
        const { state } = under();
        const lease = await held();
        const limited = (step: string) =>
          state.enterStep({ ...lease, name: step, kind: "step", dueInMs: null, maxSteps: 2 });
        await limited("a");
        await limited("b");
        expect(await limited("c")).toEqual({ kind: "too_many" });
        expect(await limited("a")).toMatchObject({ kind: "ok", step: { entries: 2 } });
      });

      it("of many is read page by page, and a long result by itself", async () => {
        const { state } = under();
        const lease = await held();
        const long = JSON.stringify("x".repeat(100_000));
        for (let n = 0; n < 9; n += 1) {
          await enter(lease, `s${n}`);
          await state.endStep({
            ...lease,
            name: `s${n}`,
            end: { state: "done", result: n === 4 ? long : null },
          });
        }
        const first = await state.recordedSteps(lease.taskId, "", 5);
        const second = await state.recordedSteps(lease.taskId, "s4", 5);
        expect([...first, ...second].map((one) => one.name).join(" ")).toBe("s0 s1 s2 s3 s4 s5 s6 s7 s8");
        expect(first[4]).toMatchObject({ result: null, leftOutLength: long.length });
        expect(first[3]).toMatchObject({ result: null, leftOutLength: null });
        expect(await state.stepResult(lease.taskId, "s4")).toBe(long);
      });

      it("that is recorded ends the count of crashes", async () => {
        const { state } = under();
        const lease = await held();
        await enter(lease, "s");
        await state.takeBack(["p_one"], 10);
        const [again] = (await claim("p_two")).claimed;
        expect(again?.crashes).toBe(1);
        const mine = { taskId: lease.taskId, owner: "p_two", fence: again?.task.fence ?? 0 };
        await enter(mine, "s");
        await state.endStep({ ...mine, name: "s", end: { state: "done", result: null } });
        await state.takeBack(["p_two"], 10);
        expect((await claim("p_three")).claimed).toMatchObject([{ crashes: 1 }]);
      });
    });

    describe("a question", () => {
      it("is open until it is answered, in the order of asking, and asked again it is the same", async () => {
        const { state } = under();
        const lease = await held();
        const { version } = await find(lease.taskId);
        await ask(lease, "z");
        await ask(lease, "a");
        await ask(lease, "z");
        const task = await find(lease.taskId);
        expect(task.status).toBe("input_required");
        expect(task.version).toBeGreaterThan(version);
        expect(task.questions.map(({ prompt, choices }) => [prompt, choices])).toEqual([
          ["z?", ["yes", "no"]],
          ["a?", ["yes", "no"]],
        ]);
        const answered = await state.answerTask({ taskId: lease.taskId, inputId: "input_z", answer: "1" });
        expect(answered).toMatchObject({
          kind: "ok",
          task: { status: "input_required", questions: [{ prompt: "a?" }] },
        });
        await state.answerTask({ taskId: lease.taskId, inputId: "input_a", answer: "2" });
        expect(await find(lease.taskId)).toMatchObject({ status: "working", questions: [] });
        expect(await ask(lease, "z")).toMatchObject({ step: { state: "done", result: "1" } });
      });

      it("brings the progress that led to it along, and without any leaves what is shown", async () => {
        const lease = await held();
        await ask(lease, "a", { message: "half", fraction: 0.5 });
        expect(await find(lease.taskId)).toMatchObject({
          status: "input_required",
          progress: { message: "half", fraction: 0.5 },
        });
        await ask(lease, "b");
        expect(await find(lease.taskId)).toMatchObject({ progress: { message: "half", fraction: 0.5 } });
      });

      it("takes one answer: the same again is none too many, another is too late, as is any after the end", async () => {
        const { state, other } = under();
        const lease = await held();
        await ask(lease, "q");
        await ask(lease, "open");
        const answers = await Promise.all(
          ["1", "2", "3", "4"].map((answer, n) =>
            (n % 2 ? state : other).answerTask({ taskId: lease.taskId, inputId: "input_q", answer }),
          ),
        );
        expect(answers.filter(({ kind }) => kind === "ok")).toHaveLength(1);
        const [given] = await state.takeAnswers(lease, ["q"]);
        const answer = given?.answer ?? "";
        expect(await state.answerTask({ taskId: lease.taskId, inputId: "input_q", answer })).toMatchObject({
          kind: "ok",
        });
        expect(await state.answerTask({ taskId: lease.taskId, inputId: "never", answer })).toMatchObject({
          kind: "not_waiting",
        });
        expect(await state.answerTask({ taskId: "task_none", inputId: "never", answer })).toEqual({
          kind: "unknown",
        });
        await state.finishTask({ ...lease, status: "completed", result: null, error: null });
        expect(await state.answerTask({ taskId: lease.taskId, inputId: "input_open", answer })).toMatchObject(
          { kind: "not_waiting" },
        );
        expect((await find(lease.taskId)).questions).toEqual([]);
      });

      it("of a parked task makes it ready when it is answered, also where that came just before", async () => {
        const { state } = under();
        const parked = await held();
        await ask(parked, "q");
        await state.releaseTask(parked, { names: ["q"], inMs: null });
        expect((await claim("p_two")).claimed).toEqual([]);
        await state.answerTask({ taskId: parked.taskId, inputId: "input_q", answer: "1" });
        expect((await claim("p_two")).claimed).toHaveLength(1);
        const late = await held();
        await ask(late, "q");
        await state.answerTask({ taskId: late.taskId, inputId: "input_q", answer: "1" });
        await state.releaseTask(late, { names: ["q"], inMs: hour });
        expect((await claim("p_two")).claimed).toMatchObject([{ task: { taskId: late.taskId } }]);
      });
    });

    describe("a cancel", () => {
      it("of what nobody holds ends it, of what is held tells its holder, and stands whatever the holder says", async () => {
        const { state } = under();
        const waiting = await create();
        expect(await state.cancelTask(waiting, [])).toMatchObject({ task: { status: "cancelled" } });
        const lease = await held();
        expect(await state.cancelTask(lease.taskId, [])).toMatchObject({
          task: { status: "working", cancelRequested: true },
        });
        expect(
          await state.finishTask({ ...lease, status: "completed", result: "1", error: null }),
        ).toMatchObject({
          task: { status: "cancelled", result: null },
        });
        expect(await state.cancelTask(lease.taskId, [])).toMatchObject({ task: { status: "cancelled" } });
        expect(await state.cancelTask("task_none", [])).toBeNull();
      });

      it("ends at once what a holder that is gone held, and what it still holds when it is found gone or gives it back", async () => {
        const { state } = under();
        const leases = [await held(), await held(), await held()] as const;
        expect(await state.cancelTask(leases[0].taskId, ["p_one"])).toMatchObject({
          task: { status: "cancelled" },
        });
        await state.cancelTask(leases[1].taskId, []);
        await state.releaseTask(leases[1], "now");
        await state.cancelTask(leases[2].taskId, []);
        await state.takeBack(["p_one"], 10);
        for (const { taskId } of leases) expect(await find(taskId)).toMatchObject({ status: "cancelled" });
        expect((await claim("p_two")).claimed).toEqual([]);
      });
    });

    describe("an end", () => {
      it("keeps result or error, and is past its time after as long as the task said", async () => {
        const { state, passTime, taskIds } = under();
        const leases = [await held({ ttlMs: hour }), await held({ ttlMs: 100 * hour })] as const;
        await state.setProgress(leases[0], "nearly", 0.9);
        await state.finishTask({ ...leases[0], status: "completed", result: '{"r":1}', error: null });
        await state.finishTask({ ...leases[1], status: "failed", result: null, error: '{"e":1}' });
        const task = await find(leases[0].taskId);
        expect(task).toMatchObject({
          status: "completed",
          result: '{"r":1}',
          leaseOwner: null,
          progress: { message: "nearly", fraction: 0.9 },
        });
        expect((task.expiresAt ?? 0) - (task.endedAt ?? 0)).toBe(hour);
        expect(await find(leases[1].taskId)).toMatchObject({ status: "failed", error: '{"e":1}' });
        await create();
        await passTime(2 * hour);
        expect(await state.sweepTasks(hour, 10)).toEqual({ marked: 1, unmarked: 0, removed: 0 });
        expect(await state.sweepTasks(hour, 10)).toEqual({ marked: 0, unmarked: 0, removed: 0 });
        await passTime(hour);
        expect(await state.sweepTasks(hour, 10)).toEqual({ marked: 0, unmarked: 0, removed: 1 });
        expect(await taskIds()).toHaveLength(2);
      });

      it("marked by a clock that comes back is unmarked, and nothing is removed", async () => {
        const { state, passTime, taskIds } = under();
        const lease = await held({ ttlMs: hour });
        await enter(lease, "s");
        await ask(lease, "q");
        await state.finishTask({ ...lease, status: "completed", result: "1", error: null });
        await passTime(50 * hour);
        expect((await state.sweepTasks(hour, 10)).marked).toBe(1);
        await passTime(-50 * hour);
        await state.sweepTasks(hour, 10);
        await passTime(30 * 60_000);
        expect((await state.sweepTasks(hour, 10)).removed).toBe(0);
        expect(await taskIds()).toHaveLength(1);
      });
    });

    describe("a list", () => {
      it("is in the order of creation, of one principal and status, page by page, without results and expired ones", async () => {
        const { state, passTime } = under();
        const old = await held({ ttlMs: hour });
        await state.finishTask({ ...old, status: "completed", result: "1", error: null });
        await passTime(2 * hour);
        const ids: string[] = [];
        for (let n = 0; n < 5; n += 1) {
          const lease = await held();
          if (n % 2 === 0)
            await state.finishTask({ ...lease, status: "completed", result: '"secret"', error: null });
          ids.push(lease.taskId);
          await passTime(10);
        }
        await create({ principal: "other" });
        const list = async (
          status: "working" | "completed" | null,
          limit: number,
          after: string | null = null,
        ) => {
          const last = after === null ? null : await find(after);
          const found = await state.listTasks({
            principal: "local",
            status,
            limit,
            after: last && { createdAt: last.createdAt, taskId: last.taskId },
          });
          for (const { result } of found.tasks) expect(result).toBeNull();
          return found.tasks.map(({ taskId }) => taskId);
        };
        expect(await list(null, 10)).toEqual(ids);
        expect(await list(null, 2)).toEqual(ids.slice(0, 2));
        expect(await list(null, 10, ids[1])).toEqual(ids.slice(2));
        expect(await list("completed", 10)).toEqual([ids[0], ids[2], ids[4]]);
        expect(await list("working", 10, ids[1])).toEqual([ids[3]]);
      });

      it("of versions tells which tasks changed", async () => {
        const { state } = under();
        const [one, two] = [await held(), await held()] as const;
        const ids = [one.taskId, two.taskId, "task_none"];
        const before = new Map((await state.taskVersions(ids)).map((each) => [each.taskId, each.version]));
        expect(before.size).toBe(2);
        await state.setProgress(two, "on", null);
        await enter(one, "unseen");
        const after = new Map((await state.taskVersions(ids)).map((each) => [each.taskId, each.version]));
        expect(after.get(one.taskId)).toBe(before.get(one.taskId));
        expect(after.get(two.taskId)).not.toBe(before.get(two.taskId));
      });
    });
  });
}
