/**
 * Every error that a tool can raise is raised here through a client, and where it says `retryable`, its recovery hint is followed to the
 * letter and succeeds.
 */
import { describe, expect, test } from "vitest";
import { type ErrorCode, errorCatalogue, TransferError } from "../../src/errors.ts";
import type { TransferEngine } from "../../src/transfer/engine.ts";
import { bodyOf, openBody, sha256 } from "../support/engine.ts";
import { clientKinds, connect, type Facts, facts, failure, type TestClient } from "../support/mcp-clients.ts";
import { startMcpServer, ticketOf } from "../support/mcp-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const hello = "aGVsbG8=";
const unknown = `fh_${"a".repeat(32)}`;

interface Case {
  /** Raises the error, checks what is special about it, follows its hint. */
  readonly run: (kind: (typeof clientKinds)[number]) => Promise<Facts["error"]>;
}

/** Makes the repairing call, with what it leaves to the caller. */
function repair(
  client: TestClient,
  error: Facts["error"],
  more: Record<string, unknown> = {},
): Promise<Facts> {
  if (error.repair === undefined) throw new Error(`${error.code} names no repair`);
  return facts(client, error.repair.tool, { ...error.repair.arguments, ...more });
}

/** An engine whose method fails the first time. */
function failingOnce<Name extends "status" | "create" | "list">(
  engine: TransferEngine,
  name: Name,
  error: unknown,
): TransferEngine {
  let failed = false;
  return new Proxy(engine, {
    get(target, member: keyof TransferEngine) {
      const value = target[member];
      if (typeof value !== "function") return value;
      if (member !== name || failed) return value.bind(target);
      return async () => {
        failed = true;
        throw error;
      };
    },
  });
}

const cases: Partial<Record<ErrorCode, Case["run"]>> = {
  async invalid_param(kind) {
    const { url } = await startMcpServer();
    const client = await connect(kind, url);
    const error = await failure(client, "upload_create", { filename: "a", size: "big" });
    expect(error).toMatchObject({ param: "size", message: expect.stringContaining("size") });
    expect(await failure(client, "upload_create", {})).toMatchObject({
      code: "invalid_param",
      param: "filename",
      message: "filename: It is required.",
    });
    await facts(client, "upload_create", { filename: "a", size: 3 });
    return error;
  },

  async invalid_base64(kind) {
    const { url } = await startMcpServer();
    const client = await connect(kind, url);
    const { handle } = await facts(client, "upload_create", { filename: "a" });
    const error = await failure(client, "upload_write", { handle, offset: 0, data: "aGVs\nbG8=" });
    expect(error).toMatchObject({ param: "data", position: 4 });
    expect(await repair(client, error, { data: hello })).toMatchObject({ offset: 5 });
    return error;
  },

  async client_path_not_reachable(kind) {
    const { url } = await startMcpServer();
    const client = await connect(kind, url);
    for (const path of [
      "/home/me/file.bin",
      "C:\\me\\file.bin",
      "./file.bin",
      "~/file.bin",
      "file:///home/me/file.bin",
      "file.bin",
    ]) {
      for (const name of ["upload_resume", "upload_status", "file_read", "file_download", "file_delete"]) {
        const error = await failure(client, name, { handle: path });
        expect(error, path).toMatchObject({ code: "client_path_not_reachable", param: "handle" });
        expect(error.repair).toEqual({ tool: "upload_create", arguments: { filename: "file.bin" } });
      }
    }
    expect(
      await failure(client, "upload_write", { handle: unknown, offset: 0, data: "/home/me/a.bin" }),
    ).toMatchObject({
      code: "client_path_not_reachable",
      param: "data",
    });
    for (const damaged of ["/9j/4AAQSkZJRgABAQEASABIAA", "/9j/4AAQ\nSkZJ.", "abc/de", "////-"]) {
      const error = await failure(client, "upload_write", { handle: unknown, offset: 0, data: damaged });
      expect(error.code, damaged).toBe("invalid_base64");
    }
    const error = await failure(client, "file_read", { handle: "/tmp/x.csv" });
    expect(await repair(client, error)).toMatchObject({ status: "receiving", filename: "x.csv" });
    return error;
  },

  async unknown_handle(kind) {
    const { url } = await startMcpServer();
    const client = await connect(kind, url);
    for (const handle of [
      "",
      "fh_",
      "nonsense",
      "https://example.com/files/abc",
      unknown.toUpperCase(),
      `${unknown}a`,
    ]) {
      expect(await failure(client, "upload_status", { handle }), handle).toMatchObject({
        code: "unknown_handle",
      });
    }
    const error = await failure(client, "upload_status", { handle: unknown });
    expect(await repair(client, error)).toMatchObject({ files: [] });
    return error;
  },

  async transfer_expired(kind) {
    const { url } = await startMcpServer({ limits: { uploadTtlMs: 1 } });
    const client = await connect(kind, url);
    const { handle } = await facts(client, "upload_create", { filename: "a" });
    await waitUntil(async () => (await facts(client, "upload_status", { handle })).status === "expired");
    expect(await failure(client, "upload_write", { handle, offset: 0, data: hello })).toMatchObject({
      code: "transfer_expired",
    });
    return failure(client, "upload_resume", { handle });
  },

  async offset_mismatch(kind) {
    const { url } = await startMcpServer();
    const client = await connect(kind, url);
    const { handle } = await facts(client, "upload_create", { filename: "a", size: 10 });
    await facts(client, "upload_write", { handle, offset: 0, data: hello });
    const error = await failure(client, "upload_write", { handle, offset: 3, data: hello });
    expect(error).toMatchObject({
      partial: { cursor: 5 },
      recoveryHint: expect.stringContaining("from offset 5"),
    });
    expect(await repair(client, error, { data: hello })).toMatchObject({ status: "complete" });
    return error;
  },

  async not_active(kind) {
    const { url } = await startMcpServer();
    const client = await connect(kind, url);
    const { handle } = await facts(client, "upload_create", { filename: "a", size: 5 });
    for (const name of ["file_read", "file_download"]) {
      const error = await failure(client, name, { handle });
      expect(error).toMatchObject({ code: "not_active", message: expect.stringContaining("receiving") });
      expect(await repair(client, error)).toMatchObject({ status: "receiving" });
    }
    await facts(client, "upload_write", { handle, offset: 0, data: hello });
    const error = await failure(client, "upload_resume", { handle });
    expect(await repair(client, error)).toMatchObject({ status: "complete" });
    return error;
  },

  async idempotency_conflict(kind) {
    const { url } = await startMcpServer();
    const client = await connect(kind, url);
    await facts(client, "upload_create", { filename: "a", idempotencyKey: "k" });
    const error = await failure(client, "upload_create", { filename: "b", idempotencyKey: "k" });
    await facts(client, "upload_create", { filename: "b", idempotencyKey: "k2" });
    await facts(client, "upload_create", { filename: "a", idempotencyKey: "k" });
    return error;
  },

  async size_mismatch(kind) {
    const { url } = await startMcpServer();
    const client = await connect(kind, url);
    const { handle } = await facts(client, "upload_create", { filename: "a", size: 7 });
    await facts(client, "upload_write", { handle, offset: 0, data: hello });
    const error = await failure(client, "upload_write", { handle, offset: 5, data: hello });
    expect(error.partial).toEqual({ cursor: 5 });
    expect(await repair(client, error, { data: "aGU=" })).toMatchObject({ status: "complete", offset: 7 });
    return error;
  },

  async chunk_too_large(kind) {
    const { url } = await startMcpServer({ limits: { inlineChunkBytes: 4 } });
    const client = await connect(kind, url);
    const { handle } = await facts(client, "upload_create", { filename: "a", size: 5 });
    const error = await failure(client, "upload_write", { handle, offset: 0, data: hello });
    expect(error.recoveryHint).toContain("at most 4 bytes");
    expect(await repair(client, error, { data: "aGVsbA==" })).toMatchObject({ offset: 4 });
    const whole = await failure(client, "upload_write", { handle, offset: 4, data: "A".repeat(4_000_000) });
    expect(whole.code).toBe("chunk_too_large");
    return error;
  },

  async inline_too_large(kind) {
    const { url, engine } = await startMcpServer({ limits: { inlineFileBytes: 8 } });
    const client = await connect(kind, url);
    const announced = await facts(client, "upload_create", { filename: "a", size: 9 });
    expect(
      await failure(client, "upload_write", { handle: announced.handle, offset: 0, data: hello }),
    ).toMatchObject({ code: "inline_too_large" });
    const { handle } = await facts(client, "upload_create", { filename: "b.bin" });
    await facts(client, "upload_write", { handle, offset: 0, data: hello });
    const error = await failure(client, "upload_write", { handle, offset: 5, data: hello });
    expect(error).toMatchObject({
      partial: { cursor: 5 },
      upload: { tus: expect.any(String) },
      commands: { curl: expect.stringContaining("curl -f -C 5 -T b.bin http") },
      allowHost: new URL(url).host,
      repair: { tool: "upload_resume", arguments: { handle } },
    });
    const body = bodyOf(Buffer.from("hello"));
    await engine.append(ticketOf(error.upload?.put ?? ""), { offset: 5, body, final: true });
    expect(await facts(client, "upload_status", { handle })).toMatchObject({
      status: "complete",
      offset: 10,
    });
    return error;
  },

  async file_too_large(kind) {
    const { url } = await startMcpServer({ limits: { maxFileBytes: 100 } });
    const client = await connect(kind, url);
    return failure(client, "upload_create", { filename: "a", size: 101 });
  },

  async quota_exceeded(kind) {
    const { url } = await startMcpServer({ quota: { maxBytes: null, maxFiles: 1 } });
    const client = await connect(kind, url);
    const { handle } = await facts(client, "upload_create", { filename: "a" });
    const error = await failure(client, "upload_create", { filename: "b" });
    await facts(client, "file_delete", { handle });
    await facts(client, "upload_create", { filename: "b" });
    return error;
  },

  async upload_locked(kind) {
    const { url, engine } = await startMcpServer();
    const client = await connect(kind, url);
    const { handle, upload } = await facts(client, "upload_create", { filename: "a", size: 10 });
    const body = openBody(10);
    const writing = engine.append(ticketOf(upload.put), { offset: 0, body }).catch((error: unknown) => error);
    body.feed(Buffer.from("hel"));
    let error: Facts["error"] | undefined;
    await waitUntil(async () => {
      body.feed(Buffer.alloc(0));
      const result = await client.call("upload_write", { handle, offset: 0, data: hello });
      error = result.facts.error;
      return error?.code === "upload_locked";
    });
    if (error === undefined) throw new Error("unreachable");
    expect(error.retryAfterSeconds).toBeGreaterThan(0);
    expect(error.recoveryHint).toContain(`Wait ${error.retryAfterSeconds} seconds, call upload_status`);
    await new Promise((resolve) => setTimeout(resolve, (error?.retryAfterSeconds ?? 0) * 1000 + 100));
    const { offset } = await repair(client, error);
    const next = await client.call("upload_write", {
      handle,
      offset,
      data: Buffer.from("hello worl".slice(offset)).toString("base64"),
    });
    // The idle writer is ended by this write and commits its bytes first; the answer then tells the offset reached.
    if (next.isError) {
      expect(next.facts.error).toMatchObject({ code: "offset_mismatch", partial: { cursor: 3 } });
      await repair(client, next.facts.error, { data: Buffer.from("lo worl").toString("base64") });
    }
    expect(await facts(client, "upload_status", { handle })).toMatchObject({
      status: "complete",
      sha256: sha256(Buffer.from("hello worl")),
    });
    expect(await writing).toBeInstanceOf(TransferError);
    return error;
  },

  async checksum_mismatch(kind) {
    const { url, engine } = await startMcpServer();
    const client = await connect(kind, url);
    const digest = sha256(Buffer.from("hello"));
    const { handle } = await facts(client, "upload_create", { filename: "a", size: 5, sha256: digest });
    const chunk = await failure(client, "upload_write", {
      handle,
      offset: 0,
      data: hello,
      sha256: "0".repeat(64),
    });
    expect(chunk).toMatchObject({ code: "checksum_mismatch", retryable: true, partial: { cursor: 0 } });
    const whole = await failure(client, "upload_write", { handle, offset: 0, data: "d3Jvbmc=" });
    expect(whole).toMatchObject({ code: "checksum_mismatch", retryable: true });
    for (const name of ["file_read", "file_download"]) {
      expect(await failure(client, name, { handle })).toMatchObject({
        code: "checksum_mismatch",
        repair: whole.repair,
      });
    }
    const resumed = await repair(client, whole);
    expect(resumed).toMatchObject({ handle, status: "receiving", offset: 0 });
    await repair(client, chunk, { data: hello, sha256: digest });
    expect((await engine.status("local", handle)).status).toBe("complete");
    return chunk;
  },

  async storage_full(kind) {
    const full = await startMcpServer({ minFreeBytes: Number.MAX_SAFE_INTEGER });
    // The same data folder with less in reserve stands for a disk on which space was made.
    const free = await startMcpServer({ dataDir: full.dataDir });
    const [onFull, onFree] = [await connect(kind, full.url), await connect(kind, free.url)];
    const error = await failure(onFull, "upload_create", { filename: "a" });
    const { handle } = await facts(onFree, "upload_create", { filename: "a", size: 5 });
    const write = await failure(onFull, "upload_write", { handle, offset: 0, data: hello });
    expect(write).toMatchObject({ code: "storage_full", repair: { tool: "upload_status" } });
    const { offset } = await repair(onFree, write);
    expect(await facts(onFree, "upload_write", { handle, offset, data: hello })).toMatchObject({
      status: "complete",
    });
    return error;
  },

  async storage_unavailable(kind) {
    const busy = new TransferError("storage_unavailable", "The state store is busy.", {
      retryAfterSeconds: 1,
    });
    const { url } = await startMcpServer({ wrapEngine: (engine) => failingOnce(engine, "list", busy) });
    const client = await connect(kind, url);
    const error = await failure(client, "file_list");
    expect(error).toMatchObject({
      retryAfterSeconds: 1,
      recoveryHint: "Wait 1 second, then make the same call again.",
    });
    await facts(client, "file_list");
    return error;
  },

  async internal_error(kind) {
    const { url, events } = await startMcpServer({
      endpoint: { requestIdOf: () => "request-7" },
      wrapEngine: (engine) => failingOnce(engine, "status", new Error("ENOENT: /var/secret/place")),
    });
    const client = await connect(kind, url);
    const error = await failure(client, "upload_status", { handle: unknown });
    expect(error.requestId).toBe("request-7");
    expect(JSON.stringify(error)).not.toContain("secret");
    const fault = events.find(({ event }) => event === "mcp.fault");
    expect(fault).toMatchObject({ level: "error", requestId: "request-7", tool: "upload_status" });
    expect(String(fault?.error)).toContain("/var/secret/place");
    return error;
  },
};

/** Raised by authentication, by tools to come, or by HTTP doors whose specification demands them. */
const raisedElsewhere: readonly ErrorCode[] = [
  "unauthorized",
  "forbidden",
  "unknown_task",
  "rate_limited",
  "task_not_waiting",
  "task_failed",
  "task_interrupted",
  "unsupported_version",
  "unsupported_media_type",
  "unsupported_checksum",
  "final_upload",
  "method_not_allowed",
  "precondition_failed",
  "range_not_satisfiable",
  "content_length_required",
  "headers_too_large",
  "url_not_allowed",
];

test("every code of the catalogue is raised here or belongs elsewhere", () => {
  expect([...Object.keys(cases), ...raisedElsewhere].sort()).toEqual(Object.keys(errorCatalogue).sort());
});

describe.each(clientKinds)("to %s", (kind) => {
  test.each(Object.entries(cases))("%s is told in the envelope, and its hint leads on", async (code, run) => {
    const error = await run(kind);
    expect(error).toMatchObject({
      code,
      message: expect.stringMatching(/\S/),
      retryable: errorCatalogue[code as ErrorCode].retryable,
    });
    expect(error.recoveryHint).not.toContain("Retry-After");
  });
});
