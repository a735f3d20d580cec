/**
 * Putting a task's questions to the client while it waits for the task's result, over a transport that carries requests to it (stdio).
 * One object for each connection: each question is put once, however many requests wait.
 */
import { type ElicitRequest, RELATED_TASK_META_KEY, type ServerContext } from "@modelcontextprotocol/server";
import type { InputRequest, Task } from "../tasks/engine.ts";
import { tasksOf } from "./task-facts.ts";
import { elicitsForms, fromElicitResult, toElicitation } from "./task-input.ts";
import type { ToolContext } from "./tool-definition.ts";

export interface TaskQuestions {
  /** For the time of one request. */
  during(context: ServerContext, call: ToolContext): Asking;
}

interface Asking {
  /** Puts what is newly asked, and takes back what is asked no more. */
  see(task: Task): void;
  /** The request is answered: takes back what is still put. */
  end(): void;
}

/** A person may take their time; what waits for them ends with the request in any case. */
const patienceMs = 24 * 3_600_000;

/** `capabilities`: what the client of the connection declared. */
export function createTaskQuestions(capabilities: () => unknown): TaskQuestions {
  /** Questions that are put to the client now, by any request of the connection. */
  const put = new Set<string>();
  let hasPinged = false;
  return {
    during(context, call) {
      const mine = new Map<string, AbortController>();
      /** Tried in this request and not answered by the client: not put again and again. */
      const tried = new Set<string>();
      return {
        see(task) {
          const open = task.endedAt === null && !task.cancelRequested ? task.inputRequests : [];
          for (const [id, controller] of mine) if (!open.some((one) => one.id === id)) controller.abort();
          if (!elicitsForms(capabilities())) return;
          for (const question of open) {
            if (put.has(question.id) || tried.has(question.id)) continue;
            const controller = new AbortController();
            put.add(question.id);
            tried.add(question.id);
            mine.set(question.id, controller);
            // A connection's first request has the id 0, and clients of the v1 SDK do not notice when that one is taken back.
            if (!hasPinged) context.mcpReq.send({ method: "ping" }).catch(() => {});
            hasPinged = true;
            void ask(task.taskId, question, context, call, controller.signal).finally(() => {
              put.delete(question.id);
              mine.delete(question.id);
            });
          }
        },
        end() {
          for (const controller of mine.values()) controller.abort();
        },
      };
    },
  };
}

/** Never rejects: a question that the client does not answer stays open, and can be answered by other ways. */
async function ask(
  taskId: string,
  question: InputRequest,
  { mcpReq }: ServerContext,
  call: ToolContext,
  signal: AbortSignal,
): Promise<void> {
  try {
    const { method, params } = toElicitation(question);
    const request = { method, params: { ...params, _meta: { [RELATED_TASK_META_KEY]: { taskId } } } };
    // The SDK's type of a form knows the keywords that it knows; the schema is the handler's own.
    const result = await mcpReq.send(request as unknown as ElicitRequest, { signal, timeout: patienceMs });
    const answer = fromElicitResult(question, result);
    if (answer !== null) await tasksOf(call).respond(call.principal, taskId, question.id, answer);
  } catch {
    // Taken back, refused by the client, or answered otherwise in the meantime.
  }
}
