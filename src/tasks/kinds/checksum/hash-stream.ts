/** Digests of a stream: here where it is short, else in a thread of their own. */
import type { Readable } from "node:stream";
import { Worker } from "node:worker_threads";
import type { ChecksumReply, ChecksumRequest } from "./checksum-messages.ts";
import { type DigestAlgorithm, Digests } from "./digests.ts";

/** Up to here a thread costs more than it saves. */
const inlineBytes = 1 << 20;
/** Pieces on their way to the thread. */
const maxUnderway = 8;

export interface HashRequest {
  readonly stream: Readable;
  readonly sizeBytes: number;
  readonly algorithms: readonly DigestAlgorithm[];
  readonly signal: AbortSignal;
  readonly onHashed: (bytes: number) => void;
}

export async function hashStream(request: HashRequest): Promise<Record<string, string>> {
  const { stream, sizeBytes, algorithms, signal } = request;
  const stop = (): void => void stream.destroy(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    if (sizeBytes > inlineBytes) return await hashInThread(request);
    const digests = await Digests.of(algorithms);
    for await (const piece of stream) digests.update(piece as Buffer);
    return digests.hex();
  } finally {
    signal.removeEventListener("abort", stop);
    stream.destroy();
  }
}

async function hashInThread({ stream, algorithms, onHashed }: HashRequest): Promise<Record<string, string>> {
  // Run from source the worker is TypeScript, built it is JavaScript.
  const file = import.meta.url.endsWith(".ts") ? "./checksum-worker.ts" : "./checksum-worker.js";
  const worker = new Worker(new URL(file, import.meta.url), {
    name: "longshore-checksum",
    workerData: algorithms,
  });
  const { promise: answer, resolve, reject } = Promise.withResolvers<Record<string, string>>();
  answer.catch(() => {});
  let underway = 0;
  let proceed = (): void => {};
  worker.on("message", (reply: ChecksumReply) => {
    if ("digests" in reply) return resolve(reply.digests);
    underway -= 1;
    onHashed(reply.hashedBytes);
    proceed();
  });
  worker.on("error", reject);
  worker.on("exit", () => {
    reject(new Error("the checksum thread has ended"));
    proceed();
  });
  try {
    for await (const piece of stream) {
      send(worker, piece as Buffer);
      underway += 1;
      if (underway >= maxUnderway) {
        // A thread that has ended acknowledges nothing: its end is told by the answer.
        await Promise.race([new Promise<void>((go) => (proceed = go)), answer]);
      }
    }
    worker.postMessage({ piece: null } satisfies ChecksumRequest);
    return await answer;
  } finally {
    await worker.terminate();
  }
}

/** Without a copy where the piece has its memory to itself. */
function send(worker: Worker, piece: Buffer): void {
  const { buffer, byteLength } = piece;
  const isAlone = buffer instanceof ArrayBuffer && byteLength === buffer.byteLength;
  const message: ChecksumRequest = { piece: isAlone ? new Uint8Array(buffer) : piece };
  worker.postMessage(message, isAlone ? [buffer as ArrayBuffer] : []);
}
