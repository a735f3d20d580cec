import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TransferError } from "../../src/errors.ts";
import { type FilesServer, startFilesServer } from "../support/http-server.ts";
import {
  created,
  fieldsOf,
  head,
  offsetMedia,
  patch,
  post,
  problemOf,
  stored,
  tusHeaders,
} from "../support/tus-requests.ts";

let server: FilesServer;
beforeAll(async () => {
  server = await startFilesServer();
});
afterAll(() => server.close());

const send = (
  url: string,
  method: string,
  headers: Record<string, string> = {},
  body?: string,
): Promise<Response> => fetch(url, { method, headers, ...(body !== undefined && { body }) });

describe("which protocol", () => {
  test.each(["0.2.2", "1.0.1", "2.0.0", "", "1.0.0, 1.0.0", "x"])(
    "Tus-Resumable %j answers 412 with the version spoken, on every method",
    async (version) => {
      const url = await created(server.url, { "Upload-Length": "3" });
      for (const [target, method] of [
        [`${server.url}/files`, "POST"],
        [url, "PATCH"],
        [url, "HEAD"],
        [url, "DELETE"],
      ] as const) {
        const response = await send(target, method, {
          "Tus-Resumable": version,
          "Upload-Length": "3",
          "Upload-Offset": "0",
          "Content-Type": offsetMedia,
        });
        expect([method, response.status]).toEqual([method, 412]);
        expect(fieldsOf(response)).toMatchObject({ "tus-version": "1.0.0" });
      }
      expect((await head(url)).headers.get("upload-offset")).toBe("0");
    },
  );

  test("POST and PATCH that name none answer 412 with Tus-Version, and nothing happens", async () => {
    const url = await created(server.url, { "Upload-Length": "3" });
    for (const [target, method] of [
      [`${server.url}/files`, "POST"],
      [url, "PATCH"],
      [url, "POST"],
    ] as const) {
      const response = await send(
        target,
        method,
        { "Upload-Length": "3", "Upload-Offset": "0", "Content-Type": offsetMedia },
        "abc",
      );
      expect(response.status).toBe(412);
      expect(response.headers.get("tus-version")).toBe("1.0.0");
      expect(await problemOf(response)).toMatchObject({ code: "unsupported_version", retryable: true });
    }
    expect((await head(url)).headers.get("upload-offset")).toBe("0");
  });

  test("OPTIONS says what is spoken, with or without a protocol, even of an unknown upload", async () => {
    for (const [path, allow] of [
      ["/files", "POST, OPTIONS"],
      ["/files/", "POST, OPTIONS"],
      ["/files/unknown", "GET, HEAD, PATCH, PUT, DELETE, OPTIONS"],
      ["/files/unknown/name.txt", "GET, HEAD, PATCH, PUT, DELETE, OPTIONS"],
    ] as const) {
      for (const headers of [{}, tusHeaders, { "Tus-Resumable": "0.2.2" }]) {
        const response = await send(`${server.url}${path}`, "OPTIONS", headers);
        expect(response.status).toBe(204);
        expect(fieldsOf(response)).toMatchObject({
          "tus-resumable": "1.0.0",
          "tus-version": "1.0.0",
          "tus-extension":
            "creation,creation-with-upload,creation-defer-length,termination,expiration,checksum,checksum-trailer,concatenation",
          "tus-checksum-algorithm": "sha256,sha1,md5,crc32c",
          "upload-limit": `max-size=${2 ** 40}, max-age=86400`,
          "tus-max-size": String(2 ** 40),
          allow,
        });
      }
    }
  });
});

describe("X-HTTP-Method-Override", () => {
  const override = (
    url: string,
    method: string,
    headers: Record<string, string> = {},
    body?: string,
  ): Promise<Response> =>
    send(url, "POST", { ...tusHeaders, "X-HTTP-Method-Override": method, ...headers }, body);

  test("on POST stands for PATCH, HEAD and DELETE", async () => {
    const url = await created(server.url, { "Upload-Length": "3" });
    const patched = await override(url, "PATCH", { "Upload-Offset": "0", "Content-Type": offsetMedia }, "ab");
    expect([patched.status, patched.headers.get("upload-offset")]).toEqual([204, "2"]);
    const looked = await override(url, "HEAD");
    expect([looked.status, looked.headers.get("upload-offset")]).toEqual([200, "2"]);
    expect(await looked.text()).toBe("");
    expect((await override(url, "delete")).status).toBe(204);
    expect((await head(url)).status).toBe(404);
  });

  test("on POST /files standing for POST creates", async () => {
    expect((await override(`${server.url}/files`, "POST", { "Upload-Length": "1" })).status).toBe(201);
  });

  test.each(["GET", "PUT", "FOO", "", "PATCH, DELETE"])("cannot stand for %j: 400", async (method) => {
    const url = await created(server.url, { "Upload-Length": "3" });
    const response = await override(url, method);
    expect(response.status).toBe(400);
    expect(await problemOf(response)).toMatchObject({ param: "X-HTTP-Method-Override" });
  });

  test("on another method counts for nothing", async () => {
    const url = await created(server.url, { "Upload-Length": "3" });
    const response = await patch(url, 0, "abc", { "X-HTTP-Method-Override": "DELETE" });
    expect(response.status).toBe(204);
  });
});

describe("a method without meaning", () => {
  test("answers 405 with Allow", async () => {
    const url = await created(server.url, { "Upload-Length": "3" });
    for (const [target, method, allow] of [
      [`${server.url}/files`, "GET", "POST, OPTIONS"],
      [`${server.url}/files`, "DELETE", "POST, OPTIONS"],
      [url, "POST", "GET, HEAD, PATCH, PUT, DELETE, OPTIONS"],
      [`${server.url}/d/x/y`, "PUT", "GET, HEAD, OPTIONS"],
      [`${server.url}/d/x/y`, "POST", "GET, HEAD, OPTIONS"],
    ] as const) {
      const response = await send(target, method, tusHeaders);
      expect([method, response.status]).toEqual([method, 405]);
      expect(response.headers.get("allow")).toBe(allow);
      expect(await problemOf(response)).toMatchObject({ code: "method_not_allowed" });
    }
  });
});

describe("CORS", () => {
  const origin = { Origin: "https://app.example" };
  const preflight = {
    ...origin,
    "Access-Control-Request-Method": "PATCH",
    "Access-Control-Request-Headers": "tus-resumable,upload-offset",
  };

  test("lets any origin use a ticket URL, without credentials, errors included", async () => {
    const url = await created(server.url, { "Upload-Length": "3" });
    const handle = await stored(server.url, Buffer.from("abc"));
    const { ticket } = await server.engine.mintDownload("local", handle, null);
    for (const response of [
      await head(url, { ...tusHeaders, ...origin }),
      await patch(url, 1, "x", origin),
      await patch(url, 0, "abc", origin),
      await send(`${server.url}/files/nothing`, "PUT", origin, "x"),
      await send(url, "GET", origin),
      await send(`${server.url}/d/${ticket}/x`, "GET", origin),
      await send(`${server.url}/d/nothing/x`, "GET", origin),
    ]) {
      const fields = fieldsOf(response);
      expect(fields["access-control-allow-origin"]).toBe("*");
      expect(fields["access-control-allow-credentials"]).toBeUndefined();
      const exposed = (fields["access-control-expose-headers"] ?? "").split(", ");
      expect(exposed).not.toContain("*");
      for (const name of [
        "Location",
        "Tus-Resumable",
        "Tus-Version",
        "Tus-Extension",
        "Tus-Max-Size",
        "Tus-Checksum-Algorithm",
        "Upload-Concat",
        "Upload-Complete",
        "Upload-Limit",
        "Upload-Draft-Interop-Version",
        "Upload-Offset",
        "Upload-Length",
        "Upload-Defer-Length",
        "Upload-Metadata",
        "Upload-Expires",
        "Retry-After",
        "ETag",
        "Content-Range",
        "Accept-Ranges",
        "Content-Disposition",
        "Repr-Digest",
        "Longshore-Handle",
        "Longshore-Status",
      ]) {
        expect(exposed).toContain(name);
      }
    }
  });

  test("answers the preflight of a ticket URL", async () => {
    for (const path of ["/files/x", "/files/x/y", "/d/x/y"]) {
      const response = await send(`${server.url}${path}`, "OPTIONS", preflight);
      expect(response.status).toBe(204);
      const fields = fieldsOf(response);
      expect(fields["access-control-allow-origin"]).toBe("*");
      for (const method of ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
        expect(fields["access-control-allow-methods"]?.split(", ")).toContain(method);
      }
      const allowed = fields["access-control-allow-headers"]?.toLowerCase().split(", ");
      for (const name of [
        "authorization",
        "content-type",
        "content-range",
        "content-digest",
        "repr-digest",
        "range",
        "if-range",
        "tus-resumable",
        "upload-length",
        "upload-offset",
        "upload-defer-length",
        "upload-metadata",
        "upload-checksum",
        "upload-concat",
        "upload-complete",
        "upload-draft-interop-version",
        "content-disposition",
        "x-request-id",
        "x-requested-with",
        "x-http-method-override",
      ]) {
        expect(allowed).toContain(name);
      }
    }
  });

  test("does not let other origins create, unless told to", async () => {
    for (const response of [
      await send(`${server.url}/files`, "OPTIONS", preflight),
      await post(server.url, { ...origin, "Upload-Length": "1" }),
      await post(server.url, { ...origin }),
    ]) {
      expect([...response.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    }
    const open = await startFilesServer({ corsOnCreate: true });
    try {
      const allowed = await send(`${open.url}/files`, "OPTIONS", preflight);
      expect(allowed.headers.get("access-control-allow-headers")).toContain("Authorization");
      for (const response of [
        allowed,
        await post(open.url, { "Upload-Length": "1" }),
        await post(open.url, {}),
      ]) {
        expect(response.headers.get("access-control-allow-origin")).toBe("*");
      }
    } finally {
      await open.close();
    }
  });
});

describe("request ids and faults", () => {
  test("the caller's X-Request-ID comes back where it is harmless, else another one", async () => {
    const url = `${server.url}/files/x`;
    expect((await send(url, "HEAD", { "X-Request-ID": "job-17.a:b" })).headers.get("x-request-id")).toBe(
      "job-17.a:b",
    );
    for (const bad of ["has space", '"quoted"', "a".repeat(129), "<b>", "é"]) {
      const given = (await send(url, "HEAD", { "X-Request-ID": bad })).headers.get("x-request-id") ?? "";
      expect(given).toMatch(/^[0-9a-f-]{36}$/);
    }
    expect((await send(url, "HEAD")).headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  });

  test("what is thrown inside answers 500, says nothing of it, and is logged under the same id", async () => {
    const cause = new Error("secret path /var/x");
    const faulty = await startFilesServer({
      authenticate: async () => {
        throw cause;
      },
    });
    try {
      const response = await post(faulty.url, { "Upload-Length": "1" });
      expect(response.status).toBe(500);
      const problem = await problemOf(response);
      const requestId = response.headers.get("x-request-id");
      expect(problem).toMatchObject({ code: "internal_error", retryable: false, requestId });
      expect(JSON.stringify(problem)).not.toContain("secret");
      expect(faulty.logged).toContainEqual(
        expect.objectContaining({ level: "error", requestId, error: cause }),
      );
    } finally {
      await faulty.close();
    }
  });

  test("a Retry-After that the engine gives reaches the caller", async () => {
    const full = await startFilesServer({
      authenticate: async () => {
        throw new TransferError("storage_full", "No space.", { retryAfterSeconds: 30 });
      },
    });
    try {
      const response = await post(full.url, { "Upload-Length": "1" });
      expect([response.status, response.headers.get("retry-after")]).toEqual([507, "30"]);
    } finally {
      await full.close();
    }
  });
});
