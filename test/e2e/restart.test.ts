/** What survives a restart of the built binary: URLs, tickets, digests. */
import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { freePort } from "../support/free-port.ts";
import { connect, facts } from "../support/mcp-clients.ts";
import { http, offsetOf, tusCreate, tusCreated, tusHead, tusPatch } from "../support/plain-http.ts";
import { Sample } from "../support/sample.ts";
import { startServer, useFolder, useServer } from "../support/server-process.ts";

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

describe("after SIGKILL and another start", () => {
  const running = useServer();

  test("upload and download URLs go on working, and unknown ones do not", async () => {
    const sample = new Sample("tickets", 500_000);
    const client = await connect("a client of 2026-07-28", running.server.mcpUrl);
    const made = await facts(client, "upload_create", { filename: "t.bin", size: sample.sizeBytes });
    const half = await tusPatch(made.upload.tus, 0, sample.bytes(0, 200_000));
    expect(half.status).toBe(204);
    const whole = await tusCreate(running.url, sample.sizeBytes, {}, sample.bytes());
    const finished = String(whole.headers["longshore-handle"]);
    const { url: download } = await facts(client, "file_download", { handle: finished });

    await running.killAndStart();
    const head = await tusHead(made.upload.tus);
    expect([head.status, offsetOf(head)]).toEqual([200, 200_000]);
    const rest = await tusPatch(made.upload.tus, 200_000, sample.bytes(200_000));
    expect([rest.status, rest.headers["longshore-status"]]).toEqual([204, "complete"]);
    expect(sha256((await http("GET", String(download))).body)).toBe(sample.sha256);
    expect(
      (await http("HEAD", `${made.upload.tus}x`, { headers: { "Tus-Resumable": "1.0.0" } })).status,
    ).toBe(404);
    // The final answer stays for clients that missed it.
    const again = await tusPatch(made.upload.tus, sample.sizeBytes, "");
    expect([again.status, again.headers["longshore-status"]]).toEqual([204, "complete"]);
  });

  test("an upload begun before has its digest caught up, and the last answer or upload_status tells it", async () => {
    const sample = new Sample("caught up", 40 << 20);
    const cut = 30 << 20;
    const url = await tusCreated(running.url, sample.sizeBytes);
    expect((await tusPatch(url, 0, sample.stream(0, cut), { "Content-Length": String(cut) })).status).toBe(
      204,
    );
    await running.killAndStart();
    const last = await tusPatch(url, cut, sample.bytes(cut));
    expect(last.status).toBe(204);
    expect(["verifying", "complete"]).toContain(last.headers["longshore-status"]);
    const client = await connect("a client of 2025-11-25", running.server.mcpUrl);
    const handle = String(last.headers["longshore-handle"]);
    const status = await facts(client, "upload_status", { handle, waitMs: 30_000 });
    expect(status).toMatchObject({ status: "complete", sha256: sample.sha256 });
  });

  test("a digest that was being computed when the server was killed is computed by the next one", async () => {
    const sample = new Sample("killed while verifying", 64 << 20);
    const cut = 63 << 20;
    const url = await tusCreated(running.url, sample.sizeBytes, {
      "Upload-Metadata": `sha256 ${Buffer.from(sample.sha256).toString("base64")}`,
    });
    await tusPatch(url, 0, sample.stream(0, cut), { "Content-Length": String(cut) });
    // The next process has hashed nothing yet when the last byte comes: it reads the file first.
    await running.killAndStart();
    const last = tusPatch(url, cut, sample.bytes(cut)).catch(() => null);
    const client = await connect("a client of 2026-07-28", running.server.mcpUrl);
    const handle = String((await http("HEAD", url, { headers: {} })).headers["longshore-handle"]);
    const before = await facts(client, "upload_status", { handle });
    await running.killAndStart();
    await last;
    const head = await tusHead(url);
    // All bytes may have come or not, and the digest may be open or told; nothing else is true.
    expect([200, 423]).toContain(head.status);
    expect(offsetOf(head)).toBeGreaterThanOrEqual(Number(before.offset));
    if (head.status === 200 && offsetOf(head) < sample.sizeBytes) {
      expect((await tusPatch(url, offsetOf(head), sample.bytes(offsetOf(head)))).status).toBe(204);
    }
    const again = await connect("a client of 2026-07-28", running.server.mcpUrl);
    const status = await facts(again, "upload_status", { handle, waitMs: 30_000 });
    expect(status).toMatchObject({ status: "complete", sha256: sample.sha256 });
  });
});

describe("with a public URL", () => {
  const folder = useFolder();

  test("every URL handed out has it as its base, on whatever port and under whatever Host the server is asked", async () => {
    const dataDir = path.join(folder.path, "public");
    const publicUrl = "https://files.example.test/transfers";
    const port = await freePort();
    const flags = ["--public-url", publicUrl];
    const first = await startServer({ dataDir, port, flags });
    const created = await tusCreate(first.url, 5, {}, "hello");
    expect(created.headers.location).toMatch(/^https:\/\/files\.example\.test\/transfers\/files\/[\w-]+$/);
    const client = await connect("a client of 2026-07-28", first.mcpUrl);
    const handle = created.headers["longshore-handle"];
    const offered = await facts(client, "file_download", { handle });
    expect(offered.url).toMatch(/^https:\/\/files\.example\.test\/transfers\/d\//);
    expect(await first.stop()).toBe(0);

    const second = await startServer({ dataDir, port: await freePort(), flags });
    const proxied = { headers: { Host: "files.example.test" } };
    const local = String(offered.url).replace(publicUrl, second.url);
    expect((await http("GET", local, proxied)).body.toString()).toBe("hello");
    const again = await tusCreate(second.url, 5, proxied.headers);
    expect(again.headers.location).toMatch(/^https:\/\/files\.example\.test\/transfers\/files\//);
    const stranger = await tusCreate(second.url, 5, { Host: "evil.example" });
    expect(stranger.status).toBe(403);
    expect(await second.stop()).toBe(0);
    await rm(dataDir, { recursive: true });
  });
});
