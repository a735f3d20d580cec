/** Uploads made and looked at over tus, outside of what is timed. */
import { setTimeout as sleep } from "node:timers/promises";
import type { RunningServer } from "./processes.ts";

const tus = { "Tus-Resumable": "1.0.0" };
const patienceMs = 60_000;

/** @returns the path of the upload. */
export async function createUpload(server: RunningServer, sizeBytes: number): Promise<string> {
  const base = `http://127.0.0.1:${server.port}`;
  const answer = await fetch(`${base}/files`, {
    method: "POST",
    headers: { ...tus, "Upload-Length": String(sizeBytes) },
  });
  const location = answer.headers.get("location");
  if (answer.status !== 201 || location === null)
    throw new Error(`${server.kind.label} answered ${answer.status} to a creation: ${await answer.text()}`);
  return new URL(location, base).pathname;
}

export interface UploadState {
  readonly offset: number;
  /** Longshore's id of the file; null with others. */
  readonly handle: string | null;
  /** As in the `Repr-Digest` header field; null with servers that know none. */
  readonly digest: string | null;
}

/** Asks until the server says 200: one that checks a digest after the last byte says 423 meanwhile. */
export async function awaitUpload(server: RunningServer, path: string): Promise<UploadState> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, { method: "HEAD", headers: tus });
    if (answer.status === 200) {
      return {
        offset: Number(answer.headers.get("upload-offset")),
        handle: answer.headers.get("longshore-handle"),
        digest: answer.headers.get("repr-digest"),
      };
    }
    if (answer.status !== 423 || performance.now() > deadline)
      throw new Error(`${server.kind.label} answered ${answer.status} to HEAD`);
    await sleep(20);
  }
}
