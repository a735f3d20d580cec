/**
 * `notifications/tasks` through `subscriptions/listen` (2026-07-28, Task Status Notifications). The SDK knows of no `taskIds` in a
 * subscription, so it checks the request, and its answer is replaced by the stream made here. Nothing is lost with it: tasks are the
 * only thing of this server that changes under a client's eyes.
 *
 * Promises: a listener is told the newest state, and not every one on the way, when it reads slowly; the stream ends by itself once all
 * its tasks have; what belongs to another principal is passed over in silence, like what does not exist.
 */
import {
  CLIENT_CAPABILITIES_META_KEY,
  type RequestId,
  SERVER_INFO_META_KEY,
  SUBSCRIPTION_ID_META_KEY,
} from "@modelcontextprotocol/server";
import type { Task } from "../tasks/engine.ts";
import { declaresTasks, detailedTask, tasksNotDeclared } from "./task-extension.ts";
import { tasksOf } from "./task-facts.ts";
import { isObject } from "./task-input.ts";
import type { ToolContext } from "./tool-definition.ts";

export interface TaskListen {
  readonly id: RequestId;
  readonly taskIds: readonly string[];
  /** What the client declared with the request. */
  readonly capabilities: unknown;
}

/** Far more than anybody watches at once, and little enough to look up for a request. */
const maxTaskIds = 100;
/** A comment, so that nothing on the way takes the connection for dead. */
const keepAliveMs = 15_000;

/** The request, where this body is a subscription to tasks; null for everything else. */
export function taskListenOf(body: unknown): TaskListen | null {
  if (!isObject(body) || body.method !== "subscriptions/listen" || !isObject(body.params)) return null;
  const { id } = body;
  const { notifications, _meta } = body.params;
  if (typeof id !== "string" && typeof id !== "number") return null;
  if (!isObject(notifications) || !Array.isArray(notifications.taskIds)) return null;
  const taskIds = notifications.taskIds.filter((one): one is string => typeof one === "string");
  return {
    id,
    taskIds: [...new Set(taskIds)],
    capabilities: isObject(_meta) ? _meta[CLIENT_CAPABILITIES_META_KEY] : undefined,
  };
}

export interface TaskStreams {
  /** The stream, or the JSON-RPC error where the client may have none. */
  open(listen: TaskListen, context: ToolContext): Promise<Response>;
  /** Ends all of them. */
  close(): void;
}

export function createTaskStreams(serverInfo: object, maxStreams = 1_024): TaskStreams {
  const streams = new Set<TaskStream>();
  return {
    async open(listen, context) {
      const { id, taskIds, capabilities } = listen;
      if (!declaresTasks(capabilities)) {
        const { code, message, data } = tasksNotDeclared();
        return refuse(400, id, { code, message, data });
      }
      if (taskIds.length > maxTaskIds)
        return refuse(400, id, {
          code: -32_602,
          message: `A subscription has at most ${maxTaskIds} taskIds.`,
        });
      if (streams.size >= maxStreams)
        return refuse(200, id, { code: -32_603, message: "Subscription limit reached" });
      const own = await ownTasks(taskIds, context);
      const stream = new TaskStream(listen, own, context, serverInfo, () => streams.delete(stream));
      streams.add(stream);
      return new Response(stream.body, {
        headers: {
          "Content-Type": "text/event-stream",
          "Cache-Control": "no-cache, no-transform",
          "X-Accel-Buffering": "no",
        },
      });
    },
    close() {
      for (const stream of streams) stream.end();
    },
  };
}

function refuse(status: number, id: RequestId, error: object): Response {
  return Response.json({ jsonrpc: "2.0", id, error }, { status });
}

async function ownTasks(taskIds: readonly string[], context: ToolContext): Promise<Task[]> {
  const found = await Promise.allSettled(taskIds.map((id) => tasksOf(context).get(context.principal, id)));
  return found.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
}

class TaskStream {
  readonly body: ReadableStream<Uint8Array>;
  readonly #listen: TaskListen;
  readonly #context: ToolContext;
  readonly #serverInfo: object;
  readonly #onClosed: () => void;
  /** Newest states that are yet to be told. */
  readonly #news = new Map<string, Task>();
  readonly #told = new Map<string, string>();
  readonly #running: Set<string>;
  readonly #unwatch: (() => void)[] = [];
  readonly #keepAlive: NodeJS.Timeout;
  readonly #encoder = new TextEncoder();
  readonly #frames: string[] = [];
  #ending = false;
  #closed = false;
  #wake: () => void = () => {};

  constructor(
    listen: TaskListen,
    tasks: readonly Task[],
    context: ToolContext,
    serverInfo: object,
    onClosed: () => void,
  ) {
    this.#listen = listen;
    this.#context = context;
    this.#serverInfo = serverInfo;
    this.#onClosed = onClosed;
    const ids = tasks.map(({ taskId }) => taskId);
    this.#running = new Set(ids);
    this.#frames.push(
      this.#notification("notifications/subscriptions/acknowledged", { notifications: { taskIds: ids } }),
    );
    // What stands now is told too: it may have changed since the client looked.
    for (const task of tasks) this.#see(task);
    for (const id of ids)
      this.#unwatch.push(tasksOf(context).watch(context.principal, id, (task) => this.#see(task)));
    // A change between the look above and the beginning of the watch would be told with the next one only.
    void ownTasks(ids, context).then((again) => {
      for (const task of again) this.#see(task);
    });
    this.#keepAlive = setInterval(() => {
      this.#frames.push(": keepalive\n\n");
      this.#wake();
    }, keepAliveMs).unref();
    context.signal.addEventListener("abort", () => this.end(), { once: true });
    this.body = new ReadableStream<Uint8Array>({
      pull: (controller) => this.#pull(controller),
      cancel: () => this.#close(),
    });
  }

  /** Tells what is known, and ends with the empty result that says that nothing more will come. */
  end(): void {
    this.#ending = true;
    this.#wake();
  }

  #see(task: Task): void {
    const { taskId, updatedAt } = task;
    if (!this.#running.has(taskId)) return;
    const known = this.#news.get(taskId);
    if (known !== undefined ? known.updatedAt > updatedAt : this.#told.get(taskId) === stateOf(task)) return;
    this.#news.set(taskId, task);
    this.#wake();
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    const send = (frame: string): void => controller.enqueue(this.#encoder.encode(frame));
    while (!this.#closed) {
      const frame = this.#frames.shift();
      if (frame !== undefined) return send(frame);
      const [next] = this.#news.values();
      if (next !== undefined) {
        const told = await this.#tell(next);
        return this.#closed ? undefined : send(told);
      }
      if (this.#ending || this.#running.size === 0) {
        send(this.#result());
        controller.close();
        return this.#close();
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async #tell(task: Task): Promise<string> {
    this.#news.delete(task.taskId);
    this.#told.set(task.taskId, stateOf(task));
    if (task.endedAt !== null) this.#running.delete(task.taskId);
    const params = await detailedTask(task, this.#listen.capabilities, this.#context);
    return this.#notification("notifications/tasks", params);
  }

  #notification(method: string, params: object): string {
    const _meta = { [SUBSCRIPTION_ID_META_KEY]: this.#listen.id };
    return event({ jsonrpc: "2.0", method, params: { ...params, _meta } });
  }

  #result(): string {
    const { id } = this.#listen;
    const _meta = { [SUBSCRIPTION_ID_META_KEY]: id, [SERVER_INFO_META_KEY]: this.#serverInfo };
    return event({ jsonrpc: "2.0", id, result: { resultType: "complete", _meta } });
  }

  #close(): void {
    this.#closed = true;
    clearInterval(this.#keepAlive);
    for (const unwatch of this.#unwatch) unwatch();
    this.#wake();
    this.#onClosed();
  }
}

/** What a notification tells, as far as it changes. */
function stateOf({ status, updatedAt, progress, cancelRequested, inputRequests }: Task): string {
  const questions = inputRequests.map(({ id }) => id);
  return JSON.stringify([status, updatedAt, progress, cancelRequested, questions]);
}

function event(message: object): string {
  return `event: message\ndata: ${JSON.stringify(message)}\n\n`;
}
