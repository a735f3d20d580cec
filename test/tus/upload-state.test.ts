import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ErrorCode, TransferError } from "../../src/errors.ts";
import type { Transfer, TransferEngine } from "../../src/transfer/engine.ts";
import { type FilesServer, RawConnection, startFilesServer } from "../support/http-server.ts";
import {
  base64,
  created,
  fieldsOf,
  head,
  patch,
  post,
  problemOf,
  sha256,
  stored,
  tusHeaders,
} from "../support/tus-requests.ts";
import { waitUntil } from "../support/wait-until.ts";

let server: FilesServer;
beforeAll(async () => {
  server = await startFilesServer();
});
afterAll(() => server.close());

describe("HEAD", () => {
  test("says offset, length, metadata and expiry, and is not to be stored", async () => {
    const url = await created(server.url, { "Upload-Length": "10", "Upload-Metadata": "filename YQ==" });
    await patch(url, 0, "abc");
    const response = await head(url);
    expect(response.status).toBe(200);
    expect(fieldsOf(response)).toMatchObject({
      "cache-control": "no-store",
      "upload-offset": "3",
      "upload-length": "10",
      "upload-metadata": "filename YQ==",
      "upload-expires": expect.stringMatching(/ GMT$/),
      "tus-resumable": "1.0.0",
      "longshore-status": "receiving",
      "longshore-handle": expect.stringMatching(/^fh_/),
    });
    expect(await response.text()).toBe("");
  });

  test("without any protocol is answered, with what is spoken here", async () => {
    const url = await created(server.url, { "Upload-Length": "10" });
    const response = await head(url, {});
    expect(response.status).toBe(200);
    expect(fieldsOf(response)).toMatchObject({
      "upload-offset": "0",
      "tus-version": "1.0.0",
      "tus-extension": expect.stringContaining("creation"),
    });
  });

  test("of a complete upload says the digest and no expiry", async () => {
    const url = await created(server.url, { "Upload-Length": "3" });
    await patch(url, 0, "abc");
    const response = await head(url);
    expect(response.status).toBe(200);
    expect(fieldsOf(response)).toMatchObject({
      "upload-offset": "3",
      "longshore-status": "complete",
      "repr-digest": "sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:",
    });
    expect(response.headers.get("upload-expires")).toBeNull();
  });

  test("of an unknown upload answers 404 without a body", async () => {
    const response = await head(`${server.url}/files/${"x".repeat(40)}`);
    expect(response.status).toBe(404);
    expect(await response.text()).toBe("");
  });

  test("with a download URL's secret, or a handle, answers 404", async () => {
    const handle = await stored(server.url, Buffer.from("abc"));
    const { ticket } = await server.engine.mintDownload("local", handle, null);
    expect((await head(`${server.url}/files/${ticket}`)).status).toBe(404);
    expect((await head(`${server.url}/files/${handle}`)).status).toBe(404);
  });
});

/** A server whose engine answers `head` as told. */
async function whereHead(answer: () => Promise<Transfer>): Promise<FilesServer> {
  return startFilesServer({
    wrapEngine: (engine) =>
      new Proxy(engine, {
        get(target, name) {
          if (name === "head") return answer;
          const value: unknown = Reflect.get(target, name, target);
          return typeof value === "function" ? value.bind(target) : value;
        },
      }) satisfies TransferEngine,
  });
}

const someTransfer: Transfer = {
  handle: "fh_a",
  principal: "local",
  status: "receiving",
  filename: null,
  contentType: null,
  metadata: null,
  sizeBytes: 10,
  offset: 10,
  declaredSha256: "0".repeat(64),
  sha256: null,
  createdAt: new Date(),
  expiresAt: null,
  completedAt: null,
  concat: "whole",
  uploadConcat: null,
  bytesPerSecond: null,
};

describe("HEAD on a ticket URL answers only 200, 404, 410, 422 or 423:", () => {
  test.each([
    ["storage_unavailable", 423],
    ["storage_full", 423],
    ["rate_limited", 423],
    ["not_active", 423],
    ["internal_error", 423],
    ["upload_locked", 423],
    ["unknown_handle", 404],
    ["transfer_expired", 410],
  ] as const)("%s as %i", async (code: ErrorCode, status) => {
    const faulty = await whereHead(async () => {
      throw new TransferError(code, "No.");
    });
    try {
      const response = await head(`${faulty.url}/files/${"x".repeat(40)}`);
      expect(response.status).toBe(status);
      if (status === 423) expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
    } finally {
      await faulty.close();
    }
  });

  test("anything thrown as 423, with the cause in the log under the request id", async () => {
    const cause = new Error("the disk is on fire");
    const faulty = await whereHead(async () => {
      throw cause;
    });
    try {
      const response = await head(`${faulty.url}/files/${"x".repeat(40)}`, {
        ...tusHeaders,
        "X-Request-ID": "abc-1",
      });
      expect(response.status).toBe(423);
      expect(response.headers.get("x-request-id")).toBe("abc-1");
      expect(faulty.logged).toContainEqual(
        expect.objectContaining({ level: "error", requestId: "abc-1", code: "internal_error", error: cause }),
      );
      expect(JSON.stringify(faulty.logged)).not.toContain("x".repeat(40));
    } finally {
      await faulty.close();
    }
  });

  test("verifying as 423 with Retry-After, mismatch as 422", async () => {
    let status: Transfer["status"] = "verifying";
    const faulty = await whereHead(async () => ({ ...someTransfer, status }));
    try {
      const verifying = await head(`${faulty.url}/files/a`);
      expect(verifying.status).toBe(423);
      expect(fieldsOf(verifying)).toMatchObject({
        "retry-after": "1",
        "longshore-status": "verifying",
        "longshore-handle": "fh_a",
        "upload-offset": "10",
      });
      status = "mismatch";
      const mismatch = await head(`${faulty.url}/files/a`);
      expect(mismatch.status).toBe(422);
      expect(fieldsOf(mismatch)).toMatchObject({ "longshore-status": "mismatch", "upload-offset": "10" });
    } finally {
      await faulty.close();
    }
  });

  test("past its time as 410, whatever is asked", async () => {
    const brief = await startFilesServer({ limits: { uploadTtlMs: -1000 } });
    try {
      const url = (await post(brief.url, { "Upload-Length": "3" })).headers.get("location") ?? "";
      const looked = await head(url);
      expect(looked.status).toBe(410);
      expect(looked.headers.get("upload-offset")).toBeNull();
      expect((await patch(url, 0, "abc")).status).toBe(410);
      expect((await fetch(url, { method: "PUT", body: "abc" })).status).toBe(410);
    } finally {
      await brief.close();
    }
  });

  test("past its time as lost: only a new upload helps, and no tool gives another URL of it", async () => {
    const brief = await startFilesServer({ limits: { fileTtlMs: 1000 } });
    try {
      const url = await created(brief.url, { "Upload-Length": "3" });
      const put = () => fetch(url, { method: "PUT", body: "abc" });
      const handle = (await put()).headers.get("longshore-handle") ?? "";
      const { ticket } = await brief.engine.mintDownload("local", handle, null);
      await waitUntil(async () => (await put()).status === 410);
      for (const response of [await put(), await fetch(brief.links.download(ticket, null))]) {
        expect(response.status).toBe(410);
        expect(response.headers.get("longshore-status")).toBe("expired");
        const problem = await problemOf(response);
        expect(problem).toMatchObject({ code: "transfer_expired", retryable: false });
        expect(problem.recoveryHint).toBe("Start a new upload with upload_create.");
      }
    } finally {
      await brief.close();
    }
  });

  test("with another digest than announced as mismatch, which no byte mends where the file has none", async () => {
    const digest = { "Upload-Metadata": `sha256 ${base64(sha256("other"))}` };
    const url = await created(server.url, { "Upload-Length": "3", ...digest });
    const patched = await patch(url, 0, "abc");
    expect(await problemOf(patched)).toMatchObject({
      code: "checksum_mismatch",
      retryable: true,
      repair: { tool: "upload_resume" },
    });
    const empty = await post(server.url, { "Upload-Length": "0", ...digest });
    const problems = [empty, await fetch(empty.headers.get("location") ?? "")];
    for (const response of problems) {
      expect(response.status).toBe(422);
      const problem = await problemOf(response);
      expect(problem).toMatchObject({ code: "checksum_mismatch", retryable: false });
      expect(problem).not.toHaveProperty("repair");
      expect(problem.recoveryHint).toContain("Create a new upload");
    }
  });
});

describe("the URL of a complete upload", () => {
  const uploadTtlMs = 24 * 3_600_000;

  /** As if the upload had been completed this much earlier. */
  function moveBack(handle: string, ms: number): void {
    const state = new DatabaseSync(path.join(server.dataDir, "state.sqlite"), { timeout: 5_000 });
    const moved = state
      .prepare("UPDATE upload SET completed_at = completed_at - ? WHERE handle = ?")
      .run(ms, handle);
    state.close();
    expect(moved.changes).toBe(1);
  }

  async function complete(): Promise<{ url: string; handle: string }> {
    const url = await created(server.url, { "Upload-Length": "3" });
    const answer = await patch(url, 0, "abc");
    expect(answer.headers.get("longshore-status")).toBe("complete");
    return { url, handle: answer.headers.get("longshore-handle") ?? "" };
  }

  test("answers HEAD, the empty PATCH and DELETE until the life of an upload has passed once more", async () => {
    const { url, handle } = await complete();
    moveBack(handle, uploadTtlMs - 60_000);
    expect([(await head(url)).status, (await patch(url, 3, "")).status]).toEqual([200, 204]);
    expect((await fetch(url, { method: "DELETE" })).status).toBe(204);
  });

  test("answers 410 afterwards, while the file stays and its hint leads to it", async () => {
    const { url, handle } = await complete();
    moveBack(handle, uploadTtlMs + 1);
    for (const response of [
      await head(url),
      await patch(url, 3, ""),
      await fetch(url, { method: "DELETE" }),
    ]) {
      expect(response.status).toBe(410);
      expect(response.headers.get("longshore-status")).toBe("complete");
    }
    expect(await problemOf(await patch(url, 3, ""))).toMatchObject({
      code: "transfer_expired",
      repair: { tool: "file_download", arguments: { handle } },
    });
    const { ticket } = await server.engine.mintDownload("local", handle, null);
    expect(await (await fetch(server.links.download(ticket, null))).text()).toBe("abc");
  });
});

describe("OPTIONS", () => {
  test("tells handle and status of the upload, and disturbs nobody who writes to it", async () => {
    const url = await created(server.url, { "Upload-Length": "10" });
    const raw = new RawConnection(server.port).head(
      `PATCH ${new URL(url).pathname} HTTP/1.1`,
      ...["Host: x", "Tus-Resumable: 1.0.0", "Upload-Offset: 0", "Content-Length: 10"],
      "Content-Type: application/offset+octet-stream",
    );
    raw.write("01234");
    const response = await fetch(url, { method: "OPTIONS" });
    expect(response.status).toBe(204);
    expect(fieldsOf(response)).toMatchObject({
      "longshore-handle": expect.stringMatching(/^fh_/),
      "longshore-status": "receiving",
      "access-control-allow-origin": "*",
    });
    raw.write("56789");
    expect(await raw.until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 204 /);
    raw.end();
  });
});

describe("while the announced digest is still being computed", () => {
  test("PATCH and PUT answer 423 with offset and Retry-After; POST answers 201 without an offset", async () => {
    const verifying: Transfer = { ...someTransfer, status: "verifying" };
    const slow = await startFilesServer({
      wrapEngine: (engine) =>
        new Proxy(engine, {
          get(target, name) {
            if (name === "head") return async () => verifying;
            if (name === "append") return async () => ({ transfer: verifying, receivedBytes: 10 });
            if (name === "createWith") {
              return async () => ({ transfer: verifying, receivedBytes: 10, ticket: "abc", created: true });
            }
            const value: unknown = Reflect.get(target, name, target);
            return typeof value === "function" ? value.bind(target) : value;
          },
        }),
    });
    try {
      const url = `${slow.url}/files/abc`;
      for (const response of [
        await patch(url, 0, "0123456789"),
        await fetch(url, { method: "PUT", body: "0123456789" }),
      ]) {
        expect(response.status).toBe(423);
        expect(fieldsOf(response)).toMatchObject({
          "retry-after": "1",
          "upload-offset": "10",
          "longshore-status": "verifying",
        });
      }
      const made = await post(
        slow.url,
        { "Upload-Length": "10", "Content-Type": "application/offset+octet-stream" },
        "0123456789",
      );
      expect([made.status, made.headers.get("location"), made.headers.get("upload-offset")]).toEqual([
        201,
        url,
        null,
      ]);
    } finally {
      await slow.close();
    }
  });
});

describe("DELETE", () => {
  test("removes what is past its time, too", async () => {
    const brief = await startFilesServer({ limits: { uploadTtlMs: -1000 } });
    try {
      const url = await created(brief.url, { "Upload-Length": "3" });
      expect((await fetch(url, { method: "DELETE" })).status).toBe(204);
      expect((await head(url)).status).toBe(404);
    } finally {
      await brief.close();
    }
  });

  test("removes the upload at any state: 204, then 404", async () => {
    for (const sent of ["", "ab", "abc"]) {
      const url = await created(server.url, { "Upload-Length": "3" });
      await patch(url, 0, sent);
      const response = await fetch(url, { method: "DELETE", headers: tusHeaders });
      expect(response.status).toBe(204);
      expect(fieldsOf(response)).toMatchObject({
        "tus-resumable": "1.0.0",
        "longshore-status": "deleted",
        "longshore-handle": expect.stringMatching(/^fh_/),
      });
      expect((await head(url)).status).toBe(404);
      expect((await patch(url, sent.length, "x")).status).toBe(404);
      expect((await fetch(url, { method: "DELETE", headers: tusHeaders })).status).toBe(404);
    }
  });

  test("is taken without any protocol", async () => {
    const url = await created(server.url, { "Upload-Length": "3" });
    expect((await fetch(url, { method: "DELETE" })).status).toBe(204);
  });
});
