/**
 * The caller's side of a store's worker: numbers requests, sends those of one turn together, and settles each exactly
 * once, also when the worker dies.
 */
import { Worker } from "node:worker_threads";
import { TransferError } from "../../errors.ts";
import type {
  Failure,
  FromWorker,
  ToWorker,
  WorkerReply,
  WorkerRequest,
  WorkerSettings,
} from "./protocol.ts";

/** Requests that wait for an answer; more would only wait longer than they are worth. */
const maxWaiting = 10_000;
const closeTimeoutMs = 10_000;

interface Pending {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

const unavailable = (message: string, cause?: unknown): TransferError =>
  new TransferError("storage_unavailable", message, { retryAfterSeconds: 1, cause });

function toError(failure: Failure): Error {
  const cause = failure.cause ?? undefined;
  if (failure.code === "internal_error") return new Error(failure.message, { cause });
  return new TransferError(failure.code, failure.message, {
    cause,
    ...(failure.retryable ? { retryAfterSeconds: 1 } : { retryable: false }),
  });
}

/** The compiler rewrites import specifiers but not the names of workers. */
const workerUrl = new URL(import.meta.url.endsWith(".ts") ? "./worker.ts" : "./worker.js", import.meta.url);

export class WorkerClient {
  /** As the worker found it on opening. */
  tornLogBytes = 0;
  readonly #worker: Worker;
  readonly #report: (fault: Error) => void;
  readonly #pending = new Map<number, Pending>();
  readonly #subscribers = new Set<() => void>();
  readonly #exited: Promise<void>;
  #outbox: WorkerRequest[] = [];
  #nextId = 1;
  /** Set once nothing can be asked any more. */
  #ended: TransferError | null = null;
  #closing: Promise<void> | null = null;
  #drained: (() => void) | null = null;

  private constructor(worker: Worker, report: (fault: Error) => void) {
    this.#worker = worker;
    this.#report = report;
    this.#exited = new Promise((resolve) => worker.once("exit", () => resolve()));
  }

  static async open(settings: WorkerSettings, report: (fault: Error) => void): Promise<WorkerClient> {
    const worker = new Worker(workerUrl, { name: "longshore-state", workerData: settings });
    const client = new WorkerClient(worker, report);
    await new Promise<void>((resolve, reject) => {
      worker.once("message", (message: FromWorker) => {
        if (message.kind === "ready") {
          client.tornLogBytes = message.tornLogBytes;
          resolve();
        } else reject(toError(message.kind === "failed" ? message.failure : unexpected(message.kind)));
      });
      worker.once("error", (error) => reject(unavailable("The state store could not be opened.", error)));
      worker.once("exit", () => reject(unavailable("The state store could not be opened.")));
    });
    worker.removeAllListeners("error");
    worker.on("message", (message: FromWorker) => client.#receive(message));
    worker.on("error", (error) => client.#fail(error));
    worker.once("exit", () => client.#fail(new Error("The worker of the state store has ended")));
    // An idle store keeps no process alive; one that is asked something does (see call).
    worker.unref();
    return client;
  }

  call(operation: string, args: readonly unknown[]): Promise<unknown> {
    if (this.#ended !== null) return Promise.reject(this.#ended);
    if (this.#pending.size >= maxWaiting) {
      return Promise.reject(unavailable("Too many requests wait for the state store."));
    }
    return new Promise((resolve, reject) => {
      const id = this.#nextId;
      this.#nextId += 1;
      if (this.#pending.size === 0) this.#worker.ref();
      this.#pending.set(id, { resolve, reject });
      // After all sockets that are ready have been read: what comes together goes in one message, and into one commit.
      if (this.#outbox.length === 0) setImmediate(() => this.#flush());
      this.#outbox.push({ id, operation, args });
    });
  }

  subscribe(onChange: () => void): () => void {
    // Wrapped, so that the same function may subscribe twice.
    const subscriber = (): void => onChange();
    this.#subscribers.add(subscriber);
    if (this.#subscribers.size === 1) this.#post({ kind: "watch", on: true });
    return () => {
      if (this.#subscribers.delete(subscriber) && this.#subscribers.size === 0)
        this.#post({ kind: "watch", on: false });
    };
  }

  /** Answers what has been asked, refuses what comes after, and ends the worker. */
  close(lastWords: () => Promise<unknown>): Promise<void> {
    this.#closing ??= this.#close(lastWords);
    return this.#closing;
  }

  async #close(lastWords: () => Promise<unknown>): Promise<void> {
    if (this.#ended === null) {
      // Whatever it may be that does not work here, the lock tells others that this process has gone.
      await lastWords().catch((error: unknown) =>
        this.#report(error instanceof Error ? error : new Error(String(error))),
      );
      this.#ended ??= unavailable("The state store is closed.");
      if (this.#pending.size > 0) await new Promise<void>((resolve) => (this.#drained = resolve));
    }
    this.#worker.ref();
    this.#worker.postMessage({ kind: "close" } satisfies ToWorker);
    const timeout = setTimeout(() => void this.#worker.terminate(), closeTimeoutMs);
    await this.#exited;
    clearTimeout(timeout);
    this.#subscribers.clear();
  }

  #post(message: ToWorker): void {
    if (this.#ended === null) this.#worker.postMessage(message);
  }

  #flush(): void {
    const requests = this.#outbox;
    this.#outbox = [];
    if (requests.length === 0) return;
    try {
      this.#worker.postMessage({ kind: "requests", requests } satisfies ToWorker);
    } catch (error) {
      // Something in the arguments that cannot be cloned: a fault of the program.
      for (const { id } of requests) this.#settle({ id, failure: { ...notSent, cause: String(error) } });
    }
  }

  #receive(message: FromWorker): void {
    if (message.kind === "replies") {
      for (const reply of message.replies) this.#settle(reply);
      if (message.changed) this.#notify();
    } else if (message.kind === "changed") {
      this.#notify();
    }
  }

  #settle(reply: WorkerReply): void {
    const pending = this.#pending.get(reply.id);
    if (pending === undefined) return;
    this.#pending.delete(reply.id);
    if ("failure" in reply) pending.reject(toError(reply.failure));
    else pending.resolve(reply.value);
    if (this.#pending.size > 0) return;
    this.#drained?.();
    if (this.#closing === null) this.#worker.unref();
  }

  #notify(): void {
    for (const subscriber of [...this.#subscribers]) {
      try {
        subscriber();
      } catch (error) {
        this.#report(error instanceof Error ? error : new Error(String(error)));
      }
    }
  }

  /** The worker is gone: nothing that was not answered will be. */
  #fail(cause: Error): void {
    const expected = this.#closing !== null && this.#pending.size === 0;
    this.#ended ??= unavailable("The state store has stopped working.", cause);
    for (const { reject } of this.#pending.values())
      reject(unavailable("The state store has stopped working.", cause));
    this.#pending.clear();
    this.#drained?.();
    if (!expected) this.#report(cause);
  }
}

const notSent: Failure = {
  code: "internal_error",
  message: "A request to the state store could not be sent.",
  retryable: false,
  cause: null,
};

const unexpected = (kind: string): Failure => ({
  code: "internal_error",
  message: `The worker of the state store opened with '${kind}'.`,
  retryable: false,
  cause: null,
});
