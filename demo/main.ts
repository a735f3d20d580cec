/**
 * Shows the main job end to end: a model gets a handle, a tus client sends the bytes, the server is killed half-way and started again, the
 * upload goes on from the acknowledged offset, the digests agree, and a long task runs across another kill. Ends with 0 only if all of
 * that held.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { progressOf, untilDone, untilProgress } from "./long-task.ts";
import { connectModel } from "./model.ts";
import { digestOf, makeSampleFile } from "./sample-file.ts";
import { type ServerProcess, startServer } from "./server-process.ts";
import { sendFile } from "./tus-upload.ts";

const sizeBytes = 96 * 2 ** 20;
const filename = "sample.bin";
/** On a slow machine the demo takes some seconds; what takes this long hangs. */
const patienceMs = 180_000;

const folder = await mkdtemp(join(tmpdir(), "longshore-demo-"));
let server: ServerProcess | undefined;
let step = 0;

async function cleanUp(): Promise<void> {
  await server?.kill();
  await rm(folder, { recursive: true, force: true });
}

function say(text: string, ...details: string[]): void {
  step += 1;
  console.log(`${String(step).padStart(2)}. ${text}`);
  for (const detail of details) console.log(`      ${detail}`);
}

/** A figure that must be what it is said to be; anything else ends the demo. */
function hold(what: string, holds: boolean): void {
  if (!holds) throw new Error(`This did not hold: ${what}.`);
}

const bytes = (count: number): string =>
  `${count.toLocaleString("en-US")} bytes (${((100 * count) / sizeBytes).toFixed(1)} %)`;

const seconds = (since: number): string => `${((performance.now() - since) / 1000).toFixed(2)} s`;

async function demo(): Promise<void> {
  const dataDir = join(folder, "storage");
  const path = join(folder, filename);

  server = await startServer(dataDir, 0);
  const { port } = server;
  say(
    `Started the server: pid ${server.pid}, ${server.mcpUrl}`,
    `data folder ${dataDir}, thrown away at the end`,
  );

  const sha256 = await makeSampleFile(path, sizeBytes);
  say(`Made a file of ${sizeBytes.toLocaleString("en-US")} random bytes`, `sha256 ${sha256}`);

  let model = await connectModel(server.mcpUrl);
  const created = await model.call("upload_create", { filename, size: sizeBytes, sha256 });
  const handle = String(created.handle);
  const uploadUrl = String((created.upload as { tus: string }).tus);
  await model.close();
  say(
    "The model called upload_create",
    `handle ${handle}, status ${created.status}, offset ${created.offset}`,
  );

  const victim = server;
  let killed: Promise<void> | undefined;
  const first = await sendFile(path, sizeBytes, uploadUrl, (sent, acknowledged) => {
    // Half-way, and in the middle of a request: some bytes are on their way and not acknowledged.
    if (acknowledged >= sizeBytes / 2 && sent > acknowledged) killed ??= victim.kill();
  });
  await killed;
  hold("the upload broke off", !first.finished && killed !== undefined);
  say(
    `A tus client began to send; the server was killed with SIGKILL in the middle (pid ${victim.pid})`,
    `acknowledged before the kill: ${bytes(first.acknowledged)}`,
  );

  const restartedAt = performance.now();
  server = await startServer(dataDir, port);
  say(`Started the server again: pid ${server.pid}, ready after ${seconds(restartedAt)}`);

  model = await connectModel(server.mcpUrl);
  const between = await model.call("upload_status", { handle });
  hold("no acknowledged byte was lost", Number(between.offset) >= first.acknowledged);
  say(
    "The model called upload_status",
    `status ${between.status}, offset after the restart: ${bytes(Number(between.offset))}`,
  );

  const resumedAt = performance.now();
  const second = await sendFile(path, sizeBytes, uploadUrl);
  hold("the upload resumed and did not start over", second.startedAt >= first.acknowledged);
  hold("the upload was finished", second.finished);
  say(
    `The tus client went on with the same URL, done after ${seconds(resumedAt)}`,
    `resumed from: ${bytes(second.startedAt)}`,
    `sent only the rest: ${bytes(sizeBytes - second.startedAt)}`,
  );

  const done = await model.call("upload_status", { handle, waitMs: 40_000 });
  hold("the upload is complete", done.status === "complete" && done.offset === sizeBytes);
  hold("the server's sha256 is that of the file", done.sha256 === sha256);
  say("The model called upload_status", `status ${done.status}, sha256 ${done.sha256}: agrees`);

  const offered = await model.call("file_download", { handle });
  const response = await fetch(String(offered.url));
  hold("the download was answered with 200", response.status === 200 && response.body !== null);
  const received = await digestOf(response.body ?? new ReadableStream<Uint8Array>());
  hold(
    "the downloaded bytes are those of the file",
    received.sha256 === sha256 && received.sizeBytes === sizeBytes,
  );
  say(
    "The model called file_download, and its URL was fetched",
    `${received.sizeBytes.toLocaleString("en-US")} bytes, sha256 ${received.sha256}: agrees`,
  );

  const started = await model.call("file_archive", { handles: [handle], format: "tar.gz" });
  const taskId = String(started.taskId);
  say("The model called file_archive, a long task", `task ${taskId}, status ${started.status}`);
  const worker = server;
  const before = await untilProgress(model, taskId, 0.1);
  hold("the task was still running", before.status === "working");
  await Promise.all([worker.kill(), model.close()]);
  say(
    `The server was killed with SIGKILL in the middle of the task (pid ${worker.pid})`,
    `task ${taskId}, status ${before.status}, progress before the kill: ${progressOf(before)}`,
  );

  const againAt = performance.now();
  server = await startServer(dataDir, port);
  model = await connectModel(server.mcpUrl);
  const archived = await untilDone(model, taskId);
  hold(
    "the same task was completed by the next server",
    archived.taskId === taskId && archived.status === "completed",
  );
  say(
    `Started the server again: pid ${server.pid}; it took the task up and finished it after ${seconds(againAt)}`,
    `task ${archived.taskId}, status ${archived.status}`,
  );

  const archive = archived.result as { handle: string; size: number; sha256: string };
  const { url } = await model.call("file_download", { handle: archive.handle });
  const fetched = await digestOf((await fetch(String(url))).body ?? new ReadableStream<Uint8Array>());
  hold(
    "the bytes of the archive are those that the task told",
    fetched.sha256 === archive.sha256 && fetched.sizeBytes === archive.size,
  );
  say(
    "The archive was fetched",
    `${archive.handle}, ${fetched.sizeBytes.toLocaleString("en-US")} bytes, sha256 ${fetched.sha256}: agrees`,
  );

  const extracting = await model.call("file_extract", { handle: archive.handle });
  const extracted = await untilDone(model, String(extracting.taskId));
  const [file] = (extracted.result as { files: { path: string; sha256: string }[] }).files;
  hold("the archive holds the file", file?.sha256 === sha256);
  say("The model called file_extract on the archive", `${file?.path}, sha256 ${file?.sha256}: agrees`);
  await model.close();
}

function giveUp(): void {
  void cleanUp().finally(() => process.exit(1));
}

process.once("SIGINT", giveUp);
process.once("SIGTERM", giveUp);
setTimeout(() => {
  console.error(`\nThe demo failed. It was not done after ${patienceMs / 1000} s.`);
  giveUp();
}, patienceMs).unref();

try {
  await demo();
  console.log("\nAll of it held.");
} catch (error) {
  console.error(`\nThe demo failed. ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  await cleanUp();
}
