/**
 * sha256 that follows growing files, off the main thread. The caller tells which ranges of which files have been written, in order;
 * the digest of all of them is there a moment after the last one.
 *
 * A key is followed from its first byte only: the hash of node:crypto cannot be saved, so after a restart the caller tells all ranges
 * again from the start and the worker catches up from disk.
 */
import { Worker } from "node:worker_threads";
import type { FollowerReply, FollowerRequest } from "./digest-messages.ts";

export interface FollowedDigest {
  /** Bytes hashed. */
  readonly bytes: number;
  /** sha256, lower-case hex. */
  readonly hex: string;
}

export class DigestFollower {
  readonly #worker: Worker;
  readonly #waiting = new Map<
    number,
    { resolve: (digest: FollowedDigest) => void; reject: (error: Error) => void }
  >();
  #lastId = 0;
  #dead: Error | null = null;

  constructor() {
    // Run from source the worker is TypeScript, built it is JavaScript.
    const file = import.meta.url.endsWith(".ts") ? "./digest-worker.ts" : "./digest-worker.js";
    this.#worker = new Worker(new URL(file, import.meta.url), { name: "longshore-digest" });
    this.#worker.unref();
    this.#worker.on("message", (reply: FollowerReply) => {
      const waiter = this.#waiting.get(reply.digestId);
      this.#waiting.delete(reply.digestId);
      if (this.#waiting.size === 0) this.#worker.unref();
      if ("failed" in reply) waiter?.reject(new Error(reply.failed));
      else waiter?.resolve({ bytes: reply.bytes, hex: reply.hex });
    });
    this.#worker.on("error", (error) => this.#fail(error));
    this.#worker.on("exit", () => this.#fail(new Error("the digest worker has ended")));
  }

  /** Bytes `start` to `end` (exclusive) of the file are written and come next under this key. */
  advance(key: string, path: string, start: number, end: number): void {
    if (end > start) this.#send({ kind: "advance", key, path, start, end });
  }

  /**
   * Digest of everything told so far under this key (`now`: of what is hashed at this moment). Rejects where nothing is followed
   * under the key, where a range could not be read, or where the key is dropped meanwhile.
   */
  digest(key: string, options: { now?: boolean } = {}): Promise<FollowedDigest> {
    if (this.#dead !== null) return Promise.reject(this.#dead);
    this.#lastId += 1;
    const digestId = this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(digestId, { resolve, reject });
      this.#worker.ref();
      this.#send({ kind: "digest", key, digestId, now: options.now === true });
    });
  }

  /** Forgets the key and frees what it holds. */
  drop(key: string): void {
    this.#send({ kind: "drop", key });
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #send(request: FollowerRequest): void {
    if (this.#dead === null) this.#worker.postMessage(request);
  }

  #fail(error: Error): void {
    this.#dead ??= error;
    for (const waiter of this.#waiting.values()) waiter.reject(error);
    this.#waiting.clear();
  }
}
