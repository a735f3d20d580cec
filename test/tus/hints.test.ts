/** `retryable` promises that following the hint to the letter succeeds: here it is followed, with what the answer itself tells. */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FilesServer, RawConnection, startFilesServer } from "../support/http-server.ts";
import { created, offsetMedia, problemOf, stored } from "../support/tus-requests.ts";

let server: FilesServer;
beforeAll(async () => {
  server = await startFilesServer();
});
afterAll(() => server.close());

type Fields = Record<string, string>;

const patchFields: Fields = {
  "Tus-Resumable": "1.0.0",
  "Upload-Offset": "0",
  "Content-Type": offsetMedia,
};

const send = (url: string, method: string, headers: Fields, body?: string): Promise<Response> =>
  fetch(url, { method, headers, ...(body !== undefined && { body }) });

/** The hint of a refusal with this status and code, which must be retryable. */
async function hintOf(response: Response, status: number, code: string): Promise<string> {
  expect(response.status).toBe(status);
  const problem = await problemOf(response);
  expect(problem).toMatchObject({ code, retryable: true, recoveryHint: expect.any(String) });
  return String(problem.recoveryHint);
}

/** The header field that a hint quotes: `Send 'Name: value'.` */
function quotedField(hint: string): Fields {
  const [, name = "", value = ""] = /^Send '([A-Za-z-]+): ([^']+)'/.exec(hint) ?? [];
  return { [name]: value };
}

describe("the hint of a retryable refusal succeeds when it is followed:", () => {
  test.each([
    ["another version of tus", { "Tus-Resumable": "0.2.2" }],
    ["no protocol at all", { "Tus-Resumable": "" }],
  ])("412 for %s", async (_what, wrong: Fields) => {
    const url = await created(server.url, { "Upload-Length": "3" });
    const fields = Object.fromEntries(
      Object.entries({ ...patchFields, ...wrong }).filter(([, value]) => value !== ""),
    );
    const hint = await hintOf(await send(url, "PATCH", fields, "abc"), 412, "unsupported_version");
    expect((await send(url, "PATCH", { ...fields, ...quotedField(hint) }, "abc")).status).toBe(204);
  });

  test("415 for another media type", async () => {
    const url = await created(server.url, { "Upload-Length": "3" });
    const fields = { ...patchFields, "Content-Type": "text/plain" };
    const hint = await hintOf(await send(url, "PATCH", fields, "abc"), 415, "unsupported_media_type");
    expect((await send(url, "PATCH", { ...fields, ...quotedField(hint) }, "abc")).status).toBe(204);
  });

  test("405 for a method that the URL does not know", async () => {
    const upload = await created(server.url, { "Upload-Length": "3" });
    const handle = await stored(server.url, Buffer.from("abc"));
    const { ticket } = await server.engine.mintDownload("local", handle, null);
    for (const url of [upload, server.links.download(ticket, null)]) {
      const refused = await send(url, "POST", { "Tus-Resumable": "1.0.0" });
      expect(await hintOf(refused, 405, "method_not_allowed")).toBe("Use one of the methods in Allow.");
      const methods = refused.headers.get("allow")?.split(", ") ?? [];
      expect(methods).toContain("HEAD");
      for (const method of methods.filter((each) => each !== "PATCH" && each !== "PUT"))
        expect((await send(url, method, {})).status, `${method} ${url}`).toBeLessThan(300);
    }
  });

  test("416 for a range beyond the end", async () => {
    const handle = await stored(server.url, Buffer.from("abc"));
    const { ticket } = await server.engine.mintDownload("local", handle, null);
    const url = server.links.download(ticket, null);
    const refused = await send(url, "GET", { Range: "bytes=5-9" });
    const hint = await hintOf(refused, 416, "range_not_satisfiable");
    expect(hint).toBe("Ask for a range within the size in Content-Range.");
    const [, size] = /^bytes \*\/(\d+)$/.exec(refused.headers.get("content-range") ?? "") ?? [];
    const answer = await send(url, "GET", { Range: `bytes=1-${Number(size) - 1}` });
    expect([answer.status, await answer.text()]).toEqual([206, "bc"]);
  });

  test("411 for a PUT that says nothing of a body", async () => {
    const url = await created(server.url, { "Upload-Length": "3" });
    const line = `PUT ${new URL(url).pathname} HTTP/1.1`;
    const refused = await new RawConnection(server.port).head(line, "Host: x").until(/\}$/);
    expect(refused).toMatch(/^HTTP\/1\.1 411 /);
    expect(refused).toContain('"retryable":true,"recoveryHint":"Send a Content-Length."');
    const answer = new RawConnection(server.port).head(line, "Host: x", "Content-Length: 3").write("abc");
    expect(await answer.until(/\}\n/)).toMatch(/^HTTP\/1\.1 200 [^\0]*"status":"complete"/);
    answer.end();
  });

  test("400 for a checksum algorithm that is not known", async () => {
    const url = await created(server.url, { "Upload-Length": "3" });
    const fields = { ...patchFields, "Upload-Checksum": "sha999 AAAA" };
    const hint = await hintOf(await send(url, "PATCH", fields, "abc"), 400, "unsupported_checksum");
    expect(hint).toBe("Use one of the algorithms in Tus-Checksum-Algorithm.");
    const told = (await send(url, "OPTIONS", {})).headers.get("tus-checksum-algorithm") ?? "";
    const algorithms = told.split(",").filter((name) => name !== "crc32c");
    expect(algorithms.length).toBeGreaterThan(1);
    for (const algorithm of algorithms) {
      const another = await created(server.url, { "Upload-Length": "3" });
      const digest = createHash(algorithm).update("abc").digest("base64");
      const again = { ...fields, "Upload-Checksum": `${algorithm} ${digest}` };
      expect((await send(another, "PATCH", again, "abc")).status).toBe(204);
    }
  });
});
