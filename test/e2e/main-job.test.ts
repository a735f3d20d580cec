/** The main job by real clients against the built binary: a handle from a tool, the bytes over HTTP, the digest told, the bytes back. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { curl, program, tusJs, tuspy, whyNoTuspy } from "../support/client-programs.ts";
import { clientKinds, connect, type Facts, facts, type TestClient } from "../support/mcp-clients.ts";
import { http, tusHead } from "../support/plain-http.ts";
import { Sample } from "../support/sample.ts";
import { openBlobs, useServer } from "../support/server-process.ts";
import { waitUntil } from "../support/wait-until.ts";

const running = useServer();

const chunkBytes = 256 << 10;
/** curl asks `Expect: 100-continue` for bodies above 1 MiB. */
const sizes = [0, 1, chunkBytes - 1, chunkBytes, chunkBytes + 1, 5 * chunkBytes];

interface Outgoing {
  readonly sample: Sample;
  readonly path: string;
  readonly folder: string;
  readonly created: Facts;
}

let files = 0;

async function sampleFile(sizeBytes: number): Promise<Omit<Outgoing, "created">> {
  files += 1;
  const sample = new Sample(`main job ${files}`, sizeBytes);
  const folder = path.join(running.folder, `files-${files}`);
  await mkdir(folder);
  const file = path.join(folder, "sample.bin");
  await sample.writeTo(file);
  return { sample, path: file, folder };
}

/** What every client has to see once the bytes are there: status, size and digest, and the bytes themselves, in two ways. */
async function expectStored(client: TestClient, handle: string, sample: Sample): Promise<void> {
  const status = await facts(client, "upload_status", { handle, waitMs: 20_000 });
  expect(status).toMatchObject({
    status: "complete",
    offset: sample.sizeBytes,
    size: sample.sizeBytes,
    sha256: sample.sha256,
  });
  const start = Math.max(0, sample.sizeBytes - 5000);
  const window = await facts(client, "file_read", {
    handle,
    offset: start,
    length: 8192,
    encoding: "base64",
  });
  expect(Buffer.from(String(window.data), "base64").equals(sample.bytes(start))).toBe(true);
  expect(window).toMatchObject({ eof: true, nextOffset: sample.sizeBytes });
  const offered = await facts(client, "file_download", { handle });
  expect(offered.sha256).toBe(sample.sha256);
  const download = await http("GET", String(offered.url));
  expect(download.status).toBe(200);
  expect(createHash("sha256").update(download.body).digest("hex")).toBe(sample.sha256);
  expect(download.headers["repr-digest"]).toBe(
    `sha-256=:${Buffer.from(sample.sha256, "hex").toString("base64")}:`,
  );
}

interface Sender {
  readonly name: string;
  readonly unusable: string | null;
  send(file: Outgoing): Promise<void>;
}

const tusHeaders = ["-H", "Tus-Resumable: 1.0.0"];
const patchFields = [...tusHeaders, "-H", "Content-Type: application/offset+octet-stream"];

const senders: readonly Sender[] = [
  {
    name: "tus-js-client",
    unusable: null,
    async send({ path: file, created }) {
      await tusJs(createReadStream(file), { uploadUrl: created.upload.tus, chunkSize: chunkBytes });
    },
  },
  {
    name: "the curl line of the tool",
    unusable: null,
    async send({ folder, created }) {
      const { status, stdout, stderr } = await program("bash", ["-c", created.commands.curl], folder);
      expect({ status, stderr }).toMatchObject({ status: 0 });
      expect(JSON.parse(stdout)).toMatchObject({ handle: created.handle, status: "complete" });
    },
  },
  {
    name: "curl with one PATCH",
    unusable: null,
    async send({ path: file, created }) {
      const { stdout } = await curl(
        "-f",
        "-X",
        "PATCH",
        ...patchFields,
        ...["-H", "Upload-Offset: 0", "--data-binary", `@${file}`],
        ...["-o", "/dev/null", "-w", "%{http_code} %header{upload-offset}", created.upload.tus],
      );
      expect(stdout).toBe(`204 ${created.size}`);
    },
  },
  {
    name: "tuspy",
    unusable: whyNoTuspy(),
    async send({ path: file, created, sample }) {
      const { offset } = await tuspy({
        endpoint: `${running.url}/files`,
        url: created.upload.tus,
        path: file,
        chunkBytes,
      });
      expect(offset).toBe(sample.sizeBytes);
    },
  },
];

describe.each(clientKinds)("%s", (kind) => {
  for (const { name, unusable, send } of senders) {
    test(`gets a handle, ${name} sends files around the size of a chunk, and the digests agree`, async (context) => {
      if (unusable !== null) return context.skip(unusable);
      const client = await connect(kind, running.server.mcpUrl);
      for (const sizeBytes of sizes) {
        const file = await sampleFile(sizeBytes);
        const created = await facts(client, "upload_create", {
          filename: "sample.bin",
          size: sizeBytes,
          // Every other file is checked on arrival.
          ...(sizeBytes % 2 === 0 && { sha256: file.sample.sha256 }),
        });
        // An empty file is complete as soon as it has a name.
        expect(created.status).toBe(sizeBytes === 0 ? "complete" : "receiving");
        await send({ ...file, created });
        await expectStored(client, created.handle, file.sample);
      }
    });
  }

  test("gets a handle without a size, and a tus client of deferred length and the curl line both fill it", async () => {
    const client = await connect(kind, running.server.mcpUrl);
    for (const sizeBytes of [0, 1, 3 * chunkBytes, 3 * chunkBytes + 7]) {
      const byTus = await sampleFile(sizeBytes);
      const first = await facts(client, "upload_create", { filename: "deferred.bin" });
      expect(first.upload.deferredLength).toBe(true);
      // At a stream that ends without a byte or at the end of a chunk, tus-js-client itself waits for ever.
      const { sample } = byTus;
      await tusJs(sizeBytes % chunkBytes === 0 ? sample.bytes() : sample.stream(), {
        uploadUrl: first.upload.tus,
        uploadLengthDeferred: true,
        chunkSize: chunkBytes,
      });
      await expectStored(client, first.handle, sample);

      const byCurl = await sampleFile(sizeBytes);
      const second = await facts(client, "upload_create", { filename: "sample.bin" });
      const { status } = await program("bash", ["-c", second.commands.curl], byCurl.folder);
      expect(status).toBe(0);
      await expectStored(client, second.handle, byCurl.sample);
    }
  });

  test("sends a small file itself, chunk by chunk", async () => {
    const client = await connect(kind, running.server.mcpUrl);
    const sample = new Sample(`inline by ${kind}`, 70_001);
    const { handle } = await facts(client, "upload_create", {
      filename: "inline.bin",
      size: sample.sizeBytes,
    });
    for (let offset = 0; offset < sample.sizeBytes; offset += 30_000) {
      const end = Math.min(sample.sizeBytes, offset + 30_000);
      const data = sample.bytes(offset, end).toString("base64");
      const written = await facts(client, "upload_write", { handle, offset, data });
      expect(written.offset).toBe(end);
    }
    await expectStored(client, handle, sample);
  });
});

test("tus-js-client makes an upload of its own, and it is listed with its name and digest", async () => {
  const file = await sampleFile(2 * chunkBytes + 5);
  const url = await tusJs(createReadStream(file.path), {
    endpoint: `${running.url}/files`,
    chunkSize: chunkBytes,
    metadata: { filename: "Übersicht 汉字.bin", filetype: "application/x-test" },
  });
  const head = await tusHead(url);
  const client = await connect("a client of 2026-07-28", running.server.mcpUrl);
  await expectStored(client, String(head.headers["longshore-handle"]), file.sample);
  const { files: listed } = await facts(client, "file_list", { limit: 30, status: "complete" });
  const page = listed as { handle: string; filename: string; sha256: string; contentType: string }[];
  const all = [...page];
  let cursor = (await facts(client, "file_list", { limit: 30, status: "complete" })).nextCursor as
    | string
    | undefined;
  while (cursor !== undefined) {
    const next = await facts(client, "file_list", { limit: 30, status: "complete", cursor });
    all.push(...(next.files as typeof page));
    cursor = next.nextCursor as string | undefined;
  }
  expect(all.find(({ handle }) => handle === head.headers["longshore-handle"])).toMatchObject({
    filename: "Übersicht 汉字.bin",
    contentType: "application/x-test",
    sha256: file.sample.sha256,
  });
});

test("tus-js-client makes an upload of unknown length with its first bytes in the same request", async () => {
  const sample = new Sample("with creation", 2 * chunkBytes + 9);
  const url = await tusJs(sample.stream(), {
    endpoint: `${running.url}/files`,
    chunkSize: chunkBytes,
    uploadLengthDeferred: true,
    uploadDataDuringCreation: true,
  });
  const head = await tusHead(url);
  const client = await connect("a client of 2025-11-25", running.server.mcpUrl);
  await expectStored(client, String(head.headers["longshore-handle"]), sample);
});

test("tuspy makes an upload of its own, stops, and goes on after the server was killed", async (context) => {
  const why = whyNoTuspy();
  if (why !== null) return context.skip(why);
  const file = await sampleFile(4 * chunkBytes + 3);
  const endpoint = `${running.url}/files`;
  const first = await tuspy({ endpoint, path: file.path, chunkBytes, stopAt: 2 * chunkBytes });
  expect(first.offset).toBe(2 * chunkBytes);
  await running.killAndStart();
  const second = await tuspy({ endpoint, url: first.url, path: file.path, chunkBytes });
  expect(second.offset).toBe(file.sample.sizeBytes);
  const client = await connect("a client of 2026-07-28", running.server.mcpUrl);
  const head = await tusHead(first.url);
  await expectStored(client, String(head.headers["longshore-handle"]), file.sample);
});

test("curl creates with POST, sends two PATCHes and reads the file back", async () => {
  const sample = new Sample("curl alone", chunkBytes + 1);
  const posted = await curl(
    ...["-f", "-X", "POST", ...tusHeaders, "-H", `Upload-Length: ${sample.sizeBytes}`],
    ...["-H", `Upload-Metadata: filename ${Buffer.from("von hand.bin").toString("base64")}`],
    ...["-o", "/dev/null", "-w", "%header{location}", `${running.url}/files`],
  );
  const url = posted.stdout;
  for (const [start, end] of [
    [0, chunkBytes],
    [chunkBytes, sample.sizeBytes],
  ] as const) {
    const piece = path.join(running.folder, `piece-${start}`);
    await writeFile(piece, sample.bytes(start, end));
    const patched = await curl(
      ...["-f", "-X", "PATCH", ...patchFields, "-H", `Upload-Offset: ${start}`, "--data-binary", `@${piece}`],
      ...["-o", "/dev/null", "-w", "%{http_code} %header{upload-offset} %header{longshore-status}", url],
    );
    expect(patched.stdout).toBe(`204 ${end} ${end === sample.sizeBytes ? "complete" : "receiving"}`);
  }
  const client = await connect("a client of 2026-07-28", running.server.mcpUrl);
  const head = await tusHead(url);
  const { commands } = await facts(client, "file_download", { handle: head.headers["longshore-handle"] });
  const { status } = await program("bash", ["-c", commands.curl], running.folder);
  expect(status).toBe(0);
  const back = await readFile(path.join(running.folder, "von hand.bin"));
  expect(createHash("sha256").update(back).digest("hex")).toBe(sample.sha256);
});

test("curl waits for 100 Continue before it sends a large body, and sends none where it is refused", async () => {
  const file = await sampleFile(3 << 20);
  const client = await connect("a client of 2026-07-28", running.server.mcpUrl);
  const created = await facts(client, "upload_create", {
    filename: "sample.bin",
    size: file.sample.sizeBytes,
  });
  const sent = await curl("-v", "-f", "-T", file.path, created.upload.put);
  expect(sent.stderr).toContain("Expect: 100-continue");
  expect(sent.stderr).toContain("HTTP/1.1 100 Continue");
  expect(sent.status).toBe(0);
  await expectStored(client, created.handle, file.sample);

  const small = await facts(client, "upload_create", { filename: "sample.bin", size: 10 });
  const refused = await curl("-v", "-T", file.path, "-w", "%{http_code} %{size_upload}", small.upload.put);
  expect(refused.stderr).not.toContain("100 Continue");
  expect(refused.stdout).toMatch(/413 0$/);
});

test("curl -T is cut by a kill of the server, and the line of upload_resume sends only the rest", async () => {
  const file = await sampleFile(24 << 20);
  const client = await connect("a client of 2025-11-25", running.server.mcpUrl);
  const created = await facts(client, "upload_create", {
    filename: "sample.bin",
    size: file.sample.sizeBytes,
  });
  const sending = curl("--limit-rate", "6M", "-f", "-T", file.path, created.upload.put);
  let seen = 0;
  await waitUntil(async () => {
    const { offset } = await facts(client, "upload_status", { handle: created.handle });
    seen = offset;
    return offset > 0;
  });
  await running.killAndStart();
  expect((await sending).status).not.toBe(0);
  const again = await connect("a client of 2025-11-25", running.server.mcpUrl);
  const resumed = await facts(again, "upload_resume", { handle: created.handle });
  expect(resumed.offset).toBeGreaterThanOrEqual(seen);
  expect(resumed.commands.curl).toContain(`-C ${resumed.offset} `);
  const { status, stderr } = await program("bash", ["-c", resumed.commands.curl], file.folder);
  expect({ status, stderr }).toMatchObject({ status: 0 });
  await expectStored(again, created.handle, file.sample);
});

test("a plain retry of curl -T after a cut ends right as well", async () => {
  const file = await sampleFile(12 << 20);
  const client = await connect("a client of 2026-07-28", running.server.mcpUrl);
  const created = await facts(client, "upload_create", { filename: "sample.bin" });
  // The client is cut off this time: curl gives up after two seconds.
  const cut = await curl("--limit-rate", "3M", "--max-time", "1", "-f", "-T", file.path, created.upload.put);
  expect(cut.status).not.toBe(0);
  const retried = await curl("-f", "--retry", "5", "--retry-all-errors", "-T", file.path, created.upload.put);
  expect(retried.status).toBe(0);
  await expectStored(client, created.handle, file.sample);
});

test("tus-js-client goes on by itself after the server was killed and came back", async () => {
  const file = await sampleFile(16 * chunkBytes);
  const client = await connect("a client of 2026-07-28", running.server.mcpUrl);
  const created = await facts(client, "upload_create", {
    filename: "sample.bin",
    size: file.sample.sizeBytes,
  });
  let restarted: Promise<unknown> | undefined;
  await tusJs(createReadStream(file.path), {
    uploadUrl: created.upload.tus,
    chunkSize: chunkBytes,
    retryDelays: Array.from({ length: 100 }, () => 100),
    onBytes(_upload, acknowledged) {
      if (acknowledged >= 8 * chunkBytes) restarted ??= running.killAndStart();
    },
  });
  await restarted;
  const again = await connect("a client of 2026-07-28", running.server.mcpUrl);
  await expectStored(again, created.handle, file.sample);
});

test("once all uploads have ended nothing is held open: no file of theirs, no lease", async () => {
  await waitUntil(() => openBlobs(running.server).length === 0);
  const { dataDir } = running.server;
  const state = new DatabaseSync(path.join(dataDir, "state.sqlite"), { readOnly: true });
  try {
    expect(state.prepare("SELECT count(*) AS active FROM upload WHERE lease_active = 1").get()).toEqual({
      active: 0,
    });
  } finally {
    state.close();
  }
});
