/**
 * The thread that hashes. It keeps one running sha256 for each followed key and reads the ranges it is told of, in slices and in turn, so
 * that one long catch-up delays nobody else. Bytes are read back from the page cache: the thread that receives them never
 * touches them twice.
 */
import { createHash, type Hash } from "node:crypto";
import fs from "node:fs";
import { parentPort } from "node:worker_threads";
import type { FollowerReply, FollowerRequest } from "./digest-messages.ts";

const port = parentPort;
if (port === null) throw new Error("This file runs as a worker.");

const buffer = Buffer.allocUnsafe(1 << 20);
const sliceBytes = 4 << 20;

interface Range {
  path: string;
  position: number;
  end: number;
}

type Work = { readonly range: Range } | { readonly digestId: number };

interface Followed {
  hash: Hash;
  bytes: number;
  queue: Work[];
  fd: number | null;
  path: string | null;
  failed: string | null;
}

const followed = new Map<string, Followed>();
/** Keys with work, in turn. */
const turn: string[] = [];
let scheduled = false;

function reply(message: FollowerReply): void {
  port?.postMessage(message);
}

function schedule(): void {
  if (scheduled || turn.length === 0) return;
  scheduled = true;
  // Through the event loop, so that messages which came meanwhile are seen between two slices.
  setImmediate(() => {
    scheduled = false;
    const key = turn.shift();
    const item = key === undefined ? undefined : followed.get(key);
    if (key !== undefined && item !== undefined) {
      runSlice(item);
      if (item.queue.length > 0) turn.push(key);
    }
    schedule();
  });
}

function runSlice(item: Followed): void {
  let left = sliceBytes;
  while (left > 0) {
    const work = item.queue[0];
    if (work === undefined) break;
    if ("digestId" in work) {
      item.queue.shift();
      answer(work.digestId, item);
      continue;
    }
    try {
      left -= item.failed === null ? hashSome(item, work.range, left) : left;
    } catch (cause) {
      item.failed = cause instanceof Error ? cause.message : String(cause);
    }
    if (item.failed !== null || work.range.position >= work.range.end) item.queue.shift();
  }
  if (item.queue.length === 0) closeFile(item);
}

function hashSome(item: Followed, range: Range, most: number): number {
  if (item.path !== range.path || item.fd === null) {
    closeFile(item);
    item.fd = fs.openSync(range.path, "r");
    item.path = range.path;
  }
  const want = Math.min(buffer.length, range.end - range.position, most);
  const got = fs.readSync(item.fd, buffer, 0, want, range.position);
  if (got === 0) throw new Error("the file is shorter than the bytes that were said to be in it");
  item.hash.update(got === buffer.length ? buffer : buffer.subarray(0, got));
  item.bytes += got;
  range.position += got;
  return got;
}

function closeFile(item: Followed): void {
  if (item.fd !== null) fs.closeSync(item.fd);
  item.fd = null;
}

function answer(digestId: number, item: Followed): void {
  if (item.failed !== null) reply({ digestId, failed: item.failed });
  else reply({ digestId, bytes: item.bytes, hex: item.hash.copy().digest("hex") });
}

port.on("message", (request: FollowerRequest) => {
  let item = followed.get(request.key);
  switch (request.kind) {
    case "advance": {
      if (item === undefined) {
        item = { hash: createHash("sha256"), bytes: 0, queue: [], fd: null, path: null, failed: null };
        followed.set(request.key, item);
      }
      const last = item.queue.at(-1);
      if (
        last !== undefined &&
        "range" in last &&
        last.range.path === request.path &&
        last.range.end === request.start
      ) {
        last.range.end = request.end;
      } else {
        item.queue.push({ range: { path: request.path, position: request.start, end: request.end } });
      }
      break;
    }
    case "digest":
      if (item === undefined)
        reply({ digestId: request.digestId, failed: "nothing is followed under this key" });
      else if (request.now) answer(request.digestId, item);
      else item.queue.push({ digestId: request.digestId });
      break;
    case "drop":
      if (item !== undefined) {
        for (const work of item.queue)
          if ("digestId" in work) reply({ digestId: work.digestId, failed: "dropped" });
        closeFile(item);
        followed.delete(request.key);
      }
      return;
    default:
      request satisfies never;
  }
  if (item !== undefined && item.queue.length > 0 && !turn.includes(request.key)) turn.push(request.key);
  schedule();
});
