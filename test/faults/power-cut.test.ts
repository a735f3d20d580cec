/**
 * The power goes in the moment after an answer: whatever was acknowledged by then is on the disk, and a server that is started
 * on it goes on. (Where no file system in a file can be mounted, `power-cut-calls.test.ts` is what is left: it checks the order of
 * the system calls.)
 */
import path from "node:path";
import { describe, expect, type TestContext, test } from "vitest";
import { type CutDisk, cutDisk } from "../support/cut-disk.ts";
import { connect, facts } from "../support/mcp-clients.ts";
import {
  type HttpAnswer,
  http,
  offsetOf,
  open,
  patchHeaders,
  tusCreate,
  tusCreated,
  tusHead,
  tusPatch,
} from "../support/plain-http.ts";
import { Sample } from "../support/sample.ts";
import { type ServerProcess, startServer } from "../support/server-process.ts";
import { waitUntil } from "../support/wait-until.ts";

const mebibyte = 1 << 20;

const reprDigest = (sample: Sample): string =>
  `sha-256=:${Buffer.from(sample.sha256, "hex").toString("base64")}:`;

/** What a client has been told of an upload. */
interface Told {
  readonly url: string;
  readonly sample: Sample;
  readonly offset: number;
  readonly handle: string;
}

const told = (answer: HttpAnswer, sample: Sample, offset: number, url = answer.headers.location): Told => ({
  url: new URL(String(url)).pathname,
  sample,
  offset,
  handle: String(answer.headers["longshore-handle"]),
});

/** Names its own moment; the server stands still meanwhile and knows nothing of it. */
async function powerCut(disk: CutDisk, server: ServerProcess): Promise<string> {
  server.signal("SIGSTOP");
  try {
    return path.join((await disk.cut()).path, "data");
  } finally {
    server.signal("SIGCONT");
  }
}

async function onCutDisk(
  context: TestContext,
  flags: readonly string[] = [],
): Promise<{ disk: CutDisk; server: ServerProcess; restarted(dataDir: string): Promise<ServerProcess> }> {
  const disk = cutDisk();
  if ("why" in disk) return context.skip(disk.why);
  const servers: ServerProcess[] = [];
  context.onTestFinished(async () => {
    await Promise.all(servers.map((server) => server.kill()));
    disk.remove();
  });
  const start = async (dataDir: string): Promise<ServerProcess> => {
    const server = await startServer({ dataDir, flags });
    servers.push(server);
    return server;
  };
  return { disk, server: await start(path.join(disk.path, "data")), restarted: start };
}

/** What is missing of what was told; empty where nothing is. */
async function missing(server: ServerProcess, all: readonly Told[]): Promise<string[]> {
  const faults: string[] = [];
  for (const { url, sample, offset } of all) {
    const head = await tusHead(server.url + url);
    const found = head.status === 200 ? offsetOf(head) : `status ${head.status}`;
    if (found !== offset) faults.push(`${url}: ${found} instead of ${offset}`);
    else if (offset === sample.sizeBytes && head.headers["repr-digest"] !== reprDigest(sample))
      faults.push(`${url}: digest ${head.headers["repr-digest"]}`);
  }
  return faults;
}

/** The bytes of what is complete are read, and what is not is sent to its end. */
async function expectUsable(server: ServerProcess, all: readonly Told[]): Promise<void> {
  const client = await connect("a client of 2026-07-28", server.mcpUrl);
  for (const { url, sample, offset, handle } of all) {
    if (offset < sample.sizeBytes) {
      const rest = await tusPatch(server.url + url, offset, sample.stream(offset), {
        "Content-Length": String(sample.sizeBytes - offset),
      });
      expect([rest.status, rest.headers["repr-digest"]]).toEqual([204, reprDigest(sample)]);
    }
    const { url: download, sha256 } = await facts(client, "file_download", { handle });
    expect(sha256).toBe(sample.sha256);
    const { body } = await http("GET", download as string);
    expect(body.equals(sample.bytes())).toBe(true);
  }
}

describe("a power cut in the moment after an answer", () => {
  test("loses no acknowledged creation, piece or completion, whole files and 64 MiB in one go included", async (context) => {
    const { disk, server, restarted } = await onCutDisk(context);
    const steps: { readonly found: string; readonly told: readonly Told[] }[] = [];
    const acknowledged = new Map<string, Told>();
    const cutAfter = async (one: Told): Promise<void> => {
      acknowledged.set(one.url, one);
      steps.push({ found: await powerCut(disk, server), told: [...acknowledged.values()] });
    };

    const pieces = new Sample("in pieces", 700_000);
    const created = await tusCreate(server.url, pieces.sizeBytes);
    await cutAfter(told(created, pieces, 0));
    const url = String(created.headers.location);
    for (const [start, end] of [
      [0, 300_000],
      [300_000, 300_001],
      [300_001, 700_000],
    ] as const) {
      const answer = await tusPatch(url, start, pieces.bytes(start, end));
      expect(answer.status).toBe(204);
      await cutAfter(told(answer, pieces, end, url));
    }
    const small = new Sample("small", 2000);
    const whole = await tusCreate(server.url, small.sizeBytes, {}, small.bytes());
    expect(whole.status).toBe(201);
    await cutAfter(told(whole, small, small.sizeBytes));
    const large = new Sample("large", 64 * mebibyte);
    const largeUrl = await tusCreated(server.url, large.sizeBytes);
    const sent = await tusPatch(largeUrl, 0, large.stream(), { "Content-Length": String(large.sizeBytes) });
    expect([sent.status, sent.headers["longshore-status"]]).toEqual([204, "complete"]);
    await cutAfter(told(sent, large, large.sizeBytes, largeUrl));

    for (const { found, told: all } of steps) {
      const again = await restarted(found);
      expect(await missing(again, all)).toEqual([]);
      await expectUsable(again, all);
      await again.kill();
    }
  });

  test("loses none of the small files that are acknowledged at eight in parallel", async (context) => {
    const { disk, server, restarted } = await onCutDisk(context);
    const acknowledged: Told[] = [];
    let going = true;
    const client = async (name: string): Promise<void> => {
      for (let count = 0; going; count += 1) {
        // Of both kinds: those that are kept with their record, and those that get a file.
        const sample = new Sample(`${name} ${count}`, 1 + ((count * 9973) % 50_000));
        const answer = await tusCreate(server.url, sample.sizeBytes, {}, sample.bytes());
        expect(answer.status).toBe(201);
        acknowledged.push(told(answer, sample, sample.sizeBytes));
      }
    };
    const clients = Array.from({ length: 8 }, (_, index) => client(`client ${index}`));
    const steps: { readonly found: string; readonly count: number }[] = [];
    for (const atLeast of [20, 100]) {
      await waitUntil(() => acknowledged.length >= atLeast);
      const found = await powerCut(disk, server);
      // Answers that were on their way when it stood still have come by now, and count too.
      steps.push({ found, count: acknowledged.length });
    }
    going = false;
    await Promise.all(clients);
    for (const { found, count } of steps) {
      const again = await restarted(found);
      expect(await missing(again, acknowledged.slice(0, count))).toEqual([]);
      await expectUsable(again, acknowledged.slice(count - 5, count));
      await again.kill();
    }
  });

  test("in the middle of a PATCH loses no more than the last 64 MiB or 2 s of what had come, and as much again where a commit is under way", async (context) => {
    const { disk, server, restarted } = await onCutDisk(context);
    const slow = new Sample("slow", 40 * mebibyte);
    const created = await tusCreate(server.url, slow.sizeBytes);
    const url = String(created.headers.location);
    const client = await connect("a client of 2026-07-28", server.mcpUrl);
    const handle = String(created.headers["longshore-handle"]);
    const request = open("PATCH", url, patchHeaders(0, slow.sizeBytes), 60_000);
    await request.write(slow.bytes(0, 10 * mebibyte));
    const since = performance.now();
    // Asked for by the tool, which never disturbs a writer.
    await waitUntil(
      async () => (await facts(client, "upload_status", { handle })).offset === 10 * mebibyte,
      10_000,
    );
    expect(performance.now() - since).toBeLessThan(5000);
    await request.write(slow.bytes(10 * mebibyte, 14 * mebibyte));
    const afterSeconds = await powerCut(disk, server);
    request.destroy();

    const fast = new Sample("fast", 200 * mebibyte);
    const fastUrl = await tusCreated(server.url, fast.sizeBytes);
    const flood = open("PATCH", fastUrl, patchHeaders(0, fast.sizeBytes), 60_000);
    for (const piece of fast.pieces(0, 150 * mebibyte)) await flood.write(piece);
    const afterMebibytes = await powerCut(disk, server);
    flood.destroy();

    for (const [found, path_, sample, atLeast] of [
      [afterSeconds, url, slow, 10 * mebibyte],
      // One commit may be under way, for which at most as much again is taken. What the sockets and one write hold has not come yet.
      [afterMebibytes, fastUrl, fast, (150 - 2 * 64 - 8) * mebibyte],
    ] as const) {
      const again = await restarted(found);
      const target = again.url + new URL(path_).pathname;
      const head = await tusHead(target);
      expect(head.status).toBe(200);
      const offset = offsetOf(head);
      expect(offset).toBeGreaterThanOrEqual(atLeast);
      expect(again.log()).toContain('"event":"store.recovered"');
      expect(again.log()).not.toContain("upload.torn");
      if (sample === slow) {
        const one = { url: new URL(path_).pathname, sample, offset, handle };
        await expectUsable(again, [one]);
      } else {
        const after = await connect("a client of 2026-07-28", again.mcpUrl);
        const fastHandle = head.headers["longshore-handle"];
        const { prefix } = await facts(after, "upload_status", { handle: fastHandle, prefixDigest: true });
        expect(prefix).toEqual({ bytes: offset, sha256: sample.prefixSha256(offset) });
      }
      await again.kill();
    }
  });

  test("loses acknowledged files with LONGSHORE_FSYNC=never: so the disk of these tests does lose what is not synced", async (context) => {
    const { disk, server, restarted } = await onCutDisk(context, ["--fsync", "never"]);
    const sample = new Sample("scratch", 300_000);
    const answer = await tusCreate(server.url, sample.sizeBytes, {}, sample.bytes());
    expect(answer.headers["longshore-status"]).toBe("complete");
    const all = [told(answer, sample, sample.sizeBytes)];
    expect(await missing(server, all)).toEqual([]);
    const again = await restarted(await powerCut(disk, server)).catch(() => null);
    // A state that cannot even be opened is lost too.
    if (again !== null) expect(await missing(again, all)).not.toEqual([]);
  });
});
