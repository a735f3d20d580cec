/** All operations of the tasks' state, by the names of their interface. */
import type { TaskState } from "../../../tasks/state-store.ts";
import type { OperationsOf } from "../operation.ts";
import { claimTasks, heldTasks, outlook, releaseTask, takeBack } from "./claims.ts";
import { cancelTask, finishTask, sweepTasks } from "./ending.ts";
import { findTask, listTasks, taskVersions } from "./listing.ts";
import { answerTask, askQuestion, takeAnswers } from "./questions.ts";
import { createTask } from "./starting.ts";
import { endStep, enterStep, recordedSteps, setProgress, stepResult } from "./steps.ts";

export const taskOperations: OperationsOf<TaskState> = {
  createTask: { mode: "write", run: createTask },
  findTask: { mode: "snapshot", run: findTask },
  listTasks: { mode: "snapshot", run: listTasks },
  taskVersions: { mode: "read", run: taskVersions },
  answerTask: { mode: "write", run: answerTask },
  cancelTask: { mode: "write", frees: true, run: cancelTask },
  outlook: { mode: "snapshot", run: outlook },
  claimTasks: { mode: "housekeeping", run: claimTasks },
  takeBack: { mode: "write", frees: true, run: takeBack },
  heldTasks: { mode: "read", run: heldTasks },
  takeAnswers: { mode: "housekeeping", run: takeAnswers },
  recordedSteps: { mode: "read", run: recordedSteps },
  stepResult: { mode: "read", run: stepResult },
  enterStep: { mode: "housekeeping", run: enterStep },
  endStep: { mode: "housekeeping", run: endStep },
  askQuestion: { mode: "write", run: askQuestion },
  setProgress: { mode: "write", run: setProgress },
  releaseTask: { mode: "write", frees: true, run: releaseTask },
  finishTask: { mode: "write", run: finishTask },
  sweepTasks: { mode: "write", frees: true, run: sweepTasks },
};
