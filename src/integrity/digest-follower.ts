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
  /** Begun with the first range: a process that only reads, or takes small files, has no use for it. */
  #worker: Worker | null = null;
  readonly #waiting = new Map<
    number,
    { resolve: (digest: FollowedDigest) => void; reject: (error: Error) => void }
  >();
  #lastId = 0;
  #dead: Error | null = null;

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
      this.#running().ref();
      this.#send({ kind: "digest", key, digestId, now: options.now === true });
    });
  }

  /** Forgets the key and frees what it holds. */
  drop(key: string): void {
    if (this.#worker !== null) this.#send({ kind: "drop", key });
  }

  async close(): Promise<void> {
    this.#fail(new Error("the digest worker has ended"));
    await this.#worker?.terminate();
  }

  #send(request: FollowerRequest): void {
    if (this.#dead === null) this.#running().postMessage(request);
  }

  #running(): Worker {
    if (this.#worker !== null) return this.#worker;
    // Run from source the worker is TypeScript, built it is JavaScript.
    const file = import.meta.url.endsWith(".ts") ? "./digest-worker.ts" : "./digest-worker.js";
    const worker = new Worker(new URL(file, import.meta.url), { name: "longshore-digest" });
    worker.unref();
    worker.on("message", (reply: FollowerReply) => {
      const waiter = this.#waiting.get(reply.digestId);
      this.#waiting.delete(reply.digestId);
      if (this.#waiting.size === 0) worker.unref();
      if ("failed" in reply) waiter?.reject(new Error(reply.failed));
      else waiter?.resolve({ bytes: reply.bytes, hex: reply.hex });
    });
    worker.on("error", (error) => this.#fail(error));
    worker.on("exit", () => this.#fail(new Error("the digest worker has ended")));
    this.#worker = worker;
    return worker;
  }

  #fail(error: Error): void {
    this.#dead ??= error;
    for (const waiter of this.#waiting.values()) waiter.reject(error);
    this.#waiting.clear();
  }
}
