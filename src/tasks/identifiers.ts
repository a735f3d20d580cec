/** Task ids and the names derived from them. What is derived must stay so in all versions: a replay finds its records by it. */
import { createHash } from "node:crypto";
import { newOrderedId } from "../transfer/identifiers.ts";

/** `task_`, the time, and 128 random bits. */
export function newTaskId(): string {
  return `task_${newOrderedId()}`;
}

/** The form of a task id, checked before anything is looked up. */
export function isTaskId(text: string): boolean {
  return /^task_[a-z2-7]{32}$/.test(text);
}

/** Hex, 128 bits: the same for the same step of the same task, whatever process runs it. */
function derived(taskId: string, name: string): string {
  return createHash("sha256").update(`${taskId}\n${name}`).digest("hex").slice(0, 32);
}

export function stepKey(taskId: string, name: string): string {
  return `step_${derived(taskId, name)}`;
}

export function inputId(taskId: string, name: string): string {
  return `input_${derived(taskId, name)}`;
}

const maxNameLength = 512;

/** A name made of text of any length: cut, and told apart by a digest of the whole. */
export function nameFrom(prefix: string, text: string): string {
  const name = `${prefix}: ${text}`;
  if (name.length <= 200) return name;
  return `${name.slice(0, 160)}… ${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;
}

export function isStepName(name: unknown): name is string {
  return typeof name === "string" && name.length > 0 && name.length <= maxNameLength;
}
