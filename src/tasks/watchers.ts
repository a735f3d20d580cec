/**
 * Watching tasks change without asking again and again: told at once by this process, within half a second by others. However many
 * watch, one look at the store serves them all, and none is taken while nothing changes.
 */
import type { ChangeFeed } from "../transfer/state-store.ts";
import type { TaskRecord } from "./records.ts";
import type { TaskState } from "./state-store.ts";

/** However busy the store, the watched tasks are looked at this often at most. */
const minLookMs = 200;
const maxIds = 500;
/** Version of a task that is not there any more. */
const gone = -1;

/** `null`: the task is gone. */
type Deliver = (found: { task: TaskRecord; now: number } | null) => void;

interface Watched {
  version: number;
  readonly deliver: Set<Deliver>;
  fetching: boolean;
  /** Changed again while it was fetched. */
  again: boolean;
}

export class TaskWatchers {
  readonly #state: Pick<TaskState, "taskVersions" | "findTask">;
  readonly #changes: ChangeFeed;
  readonly #onError: (error: unknown) => void;
  readonly #watched = new Map<string, Watched>();
  readonly #fresh = new Set<string>();
  #unsubscribe: (() => void) | null = null;
  #soon: NodeJS.Timeout | null = null;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(
    state: Pick<TaskState, "taskVersions" | "findTask">,
    changes: ChangeFeed,
    onError: (error: unknown) => void,
  ) {
    this.#state = state;
    this.#changes = changes;
    this.#onError = onError;
  }

  /** Delivers every change after `version` until the returned function is called. */
  watch(taskId: string, version: number, deliver: Deliver): () => void {
    const one = (found: Parameters<Deliver>[0]): void => deliver(found);
    const watched = this.#watched.get(taskId) ?? {
      version,
      deliver: new Set(),
      fetching: false,
      again: false,
    };
    // Who came with an older version has yet to hear of the newer one.
    watched.version = Math.min(watched.version, version);
    watched.deliver.add(one);
    this.#watched.set(taskId, watched);
    this.#unsubscribe ??= this.#changes.subscribe(() => this.#later());
    // What changed between the caller's look and now has been told to nobody. All that begin in one turn share a look.
    if (this.#fresh.size === 0) setImmediate(() => this.#lookAtFresh());
    this.#fresh.add(taskId);
    return () => {
      watched.deliver.delete(one);
      if (watched.deliver.size === 0 && this.#watched.get(taskId) === watched) this.#watched.delete(taskId);
      if (this.#watched.size === 0) this.#stop();
    };
  }

  /** This process changed the task. */
  wake(taskId: string): void {
    const watched = this.#watched.get(taskId);
    if (watched !== undefined) void this.#fetch(taskId, watched);
  }

  close(): void {
    this.#watched.clear();
    this.#stop();
  }

  #stop(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = null;
    if (this.#soon !== null) clearTimeout(this.#soon);
    this.#soon = null;
  }

  #later(): void {
    if (this.#soon !== null) return;
    const wait = Math.max(0, this.#lookedAt + minLookMs - performance.now());
    this.#soon = setTimeout(() => {
      this.#soon = null;
      this.#lookedAt = performance.now();
      void this.#look([...this.#watched.keys()]);
    }, wait);
  }

  #lookAtFresh(): void {
    const ids = [...this.#fresh];
    this.#fresh.clear();
    void this.#look(ids);
  }

  async #look(ids: readonly string[]): Promise<void> {
    try {
      for (let at = 0; at < ids.length; at += maxIds) {
        const some = ids.slice(at, at + maxIds).filter((id) => this.#watched.has(id));
        const versions = new Map(
          (await this.#state.taskVersions(some)).map((one) => [one.taskId, one.version]),
        );
        for (const id of some) {
          const watched = this.#watched.get(id);
          if (watched !== undefined && (versions.get(id) ?? gone) !== watched.version)
            void this.#fetch(id, watched);
        }
      }
    } catch (error) {
      // The next change brings the next look.
      this.#onError(error);
    }
  }

  async #fetch(taskId: string, watched: Watched): Promise<void> {
    if (watched.fetching) {
      watched.again = true;
      return;
    }
    watched.fetching = true;
    try {
      do {
        watched.again = false;
        const found = await this.#state.findTask(taskId);
        watched.version = found?.task.version ?? gone;
        for (const deliver of [...watched.deliver]) deliver(found);
      } while (watched.again);
    } catch (error) {
      this.#onError(error);
    } finally {
      watched.fetching = false;
    }
  }
}
