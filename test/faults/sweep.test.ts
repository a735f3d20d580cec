/** `longshore sweep` in a process of its own, beside servers that write: it removes what is past its time, and nothing else. */
import { existsSync } from "node:fs";
import { readdir, utimes, writeFile } from "node:fs/promises";
import path from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { expect, test } from "vitest";
import { program } from "../support/client-programs.ts";
import { http, open, patchHeaders, tusCreate, tusCreated, tusHead, tusPatch } from "../support/plain-http.ts";
import { Sample } from "../support/sample.ts";
import { binary, useServer } from "../support/server-process.ts";
import { waitUntil } from "../support/wait-until.ts";

const running = useServer();

const hourMs = 3_600_000;

interface Report {
  readonly markedExpired: number;
  readonly removedUploads: number;
  readonly removedBlobs: number;
}

async function sweep(): Promise<Report> {
  const { status, stdout, stderr } = await program(process.execPath, [
    ...[binary, "sweep", "--json", "--data-dir", running.server.dataDir, "--min-free-bytes", "0"],
  ]);
  expect({ status, stderr }).toMatchObject({ status: 0 });
  return JSON.parse(stdout) as Report;
}

/** Moves records in time, as no clock would. */
function change(sql: string, ...values: SQLInputValue[]): number {
  const state = new DatabaseSync(path.join(running.server.dataDir, "state.sqlite"), { timeout: 10_000 });
  try {
    return Number(state.prepare(sql).run(...values).changes);
  } finally {
    state.close();
  }
}

function row(handle: string): Record<string, unknown> | undefined {
  const state = new DatabaseSync(path.join(running.server.dataDir, "state.sqlite"), {
    readOnly: true,
    timeout: 10_000,
  });
  try {
    return state.prepare("SELECT * FROM upload WHERE handle = ?").get(handle);
  } finally {
    state.close();
  }
}

async function blobs(): Promise<string[]> {
  const dir = path.join(running.server.dataDir, "blobs");
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name, parentPath }) => path.join(parentPath, name));
}

const handleAt = async (url: string): Promise<string> =>
  String((await tusHead(url)).headers["longshore-handle"]);

test("a sweep leaves alone what a server is writing, however old its records and files are made to look", async () => {
  const sample = new Sample("written while swept", 6_000_000);
  const created = await tusCreate(running.url, sample.sizeBytes);
  const url = String(created.headers.location);
  const handle = String(created.headers["longshore-handle"]);
  const request = open("PATCH", url, patchHeaders(0, sample.sizeBytes), 60_000);
  for (let round = 0; round < 3; round += 1) {
    await request.write(sample.bytes(round * 2_000_000, (round + 1) * 2_000_000));
    await waitUntil(() => row(handle)?.lease_active === 1);
    const past = Date.now() - 100 * hourMs;
    change(
      "UPDATE upload SET expires_at = ?, marked_at = ?, updated_at = ? WHERE handle = ?",
      past,
      past,
      past,
      handle,
    );
    for (const file of await blobs()) await utimes(file, past / 1000, past / 1000);
    expect(await sweep()).toMatchObject({ removedUploads: 0, removedBlobs: 0 });
  }
  request.end();
  const answer = await request.answer;
  expect([answer.status, answer.headers["longshore-status"]]).toEqual([204, "complete"]);
  expect(answer.headers["repr-digest"]).toBe(
    `sha-256=:${Buffer.from(sample.sha256, "hex").toString("base64")}:`,
  );
  // Finished files do not expire unless told to.
  expect(await sweep()).toMatchObject({ removedUploads: 0 });
  const again = await tusPatch(url, sample.sizeBytes, "");
  expect(again.status).toBe(204);
});

test("sweeps that run without a pause beside a busy server take nothing from it", async () => {
  let done = false;
  const sweeping = (async () => {
    let count = 0;
    for (; !done; count += 1) await sweep();
    return count;
  })();
  let refused: string | null = null;
  for (let count = 0; count < 25; count += 1) {
    const sample = new Sample(`beside sweeps ${count}`, 300_000);
    const url = await tusCreated(running.url, sample.sizeBytes);
    for (let at = 0; at < sample.sizeBytes; at += 100_000) {
      const patched = await tusPatch(url, at, sample.bytes(at, at + 100_000));
      if (patched.status !== 204) refused ??= `${patched.status} ${patched.body}`;
    }
    const head = await tusHead(url);
    expect(head.headers["repr-digest"]).toBe(
      `sha-256=:${Buffer.from(sample.sha256, "hex").toString("base64")}:`,
    );
  }
  done = true;
  expect(await sweeping).toBeGreaterThan(0);
  expect(refused).toBeNull();
});

test("what has expired is marked first, removed an hour later, and its bytes an hour after that", async () => {
  const sample = new Sample("expires", 200_000);
  const url = await tusCreated(running.url, sample.sizeBytes);
  const handle = await handleAt(url);
  const before = new Set(await blobs());
  expect((await tusPatch(url, 0, sample.bytes(0, 150_000))).status).toBe(204);
  const mine = (await blobs()).filter((file) => !before.has(file));
  expect(mine).toHaveLength(1);

  change("UPDATE upload SET expires_at = ? WHERE handle = ?", Date.now() - 1000, handle);
  expect((await tusHead(url)).status).toBe(410);
  expect(await sweep()).toMatchObject({ markedExpired: 1, removedUploads: 0 });
  expect(await sweep()).toMatchObject({ markedExpired: 0, removedUploads: 0 });
  change("UPDATE upload SET marked_at = ? WHERE handle = ?", Date.now() - 2 * hourMs, handle);
  expect(await sweep()).toMatchObject({ removedUploads: 1, removedBlobs: 0 });
  expect((await tusHead(url)).status).toBe(404);
  expect(mine.every((file) => existsSync(file))).toBe(true);
  expect(change("UPDATE garbage SET since = ?", Date.now() - 2 * hourMs)).toBeGreaterThan(0);
  expect((await sweep()).removedBlobs).toBeGreaterThan(0);
  expect(mine.some((file) => existsSync(file))).toBe(false);
});

test("an upload that was marked and then got its time back is not removed", async () => {
  const url = await tusCreated(running.url, 10);
  const handle = await handleAt(url);
  const late = Date.now() + hourMs;
  change("UPDATE upload SET expires_at = ? WHERE handle = ?", Date.now() - 1000, handle);
  expect((await sweep()).markedExpired).toBe(1);
  change(
    "UPDATE upload SET expires_at = ?, marked_at = ? WHERE handle = ?",
    late,
    Date.now() - 2 * hourMs,
    handle,
  );
  expect(await sweep()).toMatchObject({ removedUploads: 0 });
  expect(row(handle)?.marked_at).toBeNull();
  expect((await tusPatch(url, 0, "0123456789")).status).toBe(204);
});

test("an old file that no record names is removed in time, a young one and the files of records never", async () => {
  const kept = new Sample("kept", 100_000);
  const whole = await tusCreate(running.url, kept.sizeBytes, {}, kept.bytes());
  const [known] = await blobs();
  const { dir, base } = path.parse(String(known));
  // Another name of the same form, for the same folder, which a letter near either end may choose.
  const stray = (letters: string): string => path.join(dir, base.slice(0, 14) + letters + base.slice(18));
  const [old, young] = [stray("aaaa"), stray("bbbb")];
  await writeFile(old, "old");
  await writeFile(young, "young");
  const past = Date.now() / 1000 - 7200;
  for (const file of await blobs()) if (file !== young) await utimes(file, past, past);
  await sweep();
  expect(existsSync(old)).toBe(true);
  change("UPDATE garbage SET since = ?", Date.now() - 2 * hourMs);
  await sweep();
  expect([existsSync(old), existsSync(young)]).toEqual([false, true]);
  const head = await http("HEAD", String(whole.headers.location), { headers: { "Tus-Resumable": "1.0.0" } });
  expect(head.headers["longshore-status"]).toBe("complete");
});
