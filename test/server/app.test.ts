/** The routes of the server itself and the guards before all others, over the real listener. */
import { createHash } from "node:crypto";
import request from "supertest";
import { describe, expect, test } from "vitest";
import { escapeHtml, landingPage } from "../../src/web/landing-page.ts";
import { startTestServer } from "../support/running-server.ts";
import { created, patch, tusHeaders } from "../support/tus-requests.ts";

const problem = "application/problem+json";

describe("Host", () => {
  test("is checked on every route, ticket URLs, health and unknown ones included", async () => {
    const server = await startTestServer();
    const upload = new URL(await created(server.publicUrl, { "Upload-Length": "5" })).pathname;
    for (const [method, path] of [
      ["get", "/"],
      ["get", "/healthz"],
      ["get", "/readyz"],
      ["get", "/nowhere"],
      ["post", "/files"],
      ["options", "/files"],
      ["head", upload],
      ["delete", upload],
      ["get", "/d/x/y"],
    ] as const) {
      const answer = await request(server.publicUrl)[method](path).set("Host", "evil.example");
      expect(answer.status, `${method} ${path}`).toBe(403);
      if (method === "head") continue;
      expect(answer.type).toBe(problem);
      expect(answer.body).toMatchObject({ code: "forbidden", status: 403, retryable: false });
    }
    const mcp = await request(server.publicUrl).post("/mcp").set("Host", "evil.example").send({});
    expect(mcp.status).toBe(403);
    expect(mcp.body).toMatchObject({ jsonrpc: "2.0", error: expect.any(Object) });
    const still = await request(server.publicUrl).head(upload).set(tusHeaders).set("Host", "localhost");
    expect(still.status).toBe(200);
  });

  test("of the public URL is answered, and every URL handed out starts with it", async () => {
    const server = await startTestServer({ publicUrl: "https://files.example.com/up" });
    const answer = await request(`http://127.0.0.1:${server.port}`)
      .post("/files")
      .set({ ...tusHeaders, Host: "files.example.com", "Upload-Length": "5" });
    expect(answer.status).toBe(201);
    expect(answer.headers.location).toMatch(/^https:\/\/files\.example\.com\/up\/files\/[\w-]{40}$/);
  });
});

describe("Origin on creation", () => {
  const create = (server: { publicUrl: string }, origin: string | null, path = "/files") =>
    request(server.publicUrl)
      .post(path)
      .set({ ...tusHeaders, "Upload-Length": "5", ...(origin !== null && { Origin: origin }) });

  test.each(["https://evil.example", "null"])(
    "of %s is refused, shared with nobody, and creates nothing",
    async (origin) => {
      const server = await startTestServer({ allowedOrigins: "https://app.example" });
      for (const path of ["/files", "/files/"]) {
        const answer = await create(server, origin, path);
        expect(answer.status).toBe(403);
        expect(answer.body).toMatchObject({ code: "forbidden" });
        expect(answer.headers).not.toHaveProperty("access-control-allow-origin");
      }
      const list = await request(server.mcpUrl)
        .post("")
        .set({ Accept: "application/json, text/event-stream" })
        .send({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "file_list", arguments: {} } });
      expect(list.text).toContain('"files\\":[]');
    },
  );

  test("of an allowed page, a loopback page or this server is accepted and shared with that page alone", async () => {
    const server = await startTestServer({ allowedOrigins: "https://app.example" });
    for (const origin of ["https://app.example", "http://localhost:3000", server.publicUrl]) {
      const answer = await create(server, origin);
      expect(answer.status).toBe(201);
      expect(answer.headers["access-control-allow-origin"]).toBe(origin);
      expect(answer.headers["access-control-expose-headers"]).toContain("Location");
      expect(answer.headers).not.toHaveProperty("access-control-allow-credentials");
      expect(answer.headers.vary).toContain("Origin");
    }
    expect((await create(server, null)).status).toBe(201);
  });

  test("a preflight is granted to allowed pages only", async () => {
    const server = await startTestServer({ allowedOrigins: "https://app.example" });
    const ask = (origin: string) => request(server.publicUrl).options("/files").set("Origin", origin);
    const granted = await ask("https://app.example");
    expect(granted.headers["access-control-allow-origin"]).toBe("https://app.example");
    expect(granted.headers["access-control-allow-headers"]).toContain("Upload-Length");
    expect((await ask("https://evil.example")).headers).not.toHaveProperty("access-control-allow-origin");
  });

  test("does not matter on a ticket URL: the secret in it is the authority", async () => {
    const server = await startTestServer();
    const url = await created(server.publicUrl, { "Upload-Length": "5" });
    const answer = await patch(url, 0, "hello", { Origin: "https://evil.example" });
    expect(answer.status).toBe(204);
    expect(answer.headers.get("access-control-allow-origin")).toBe("*");
  });
});

describe("health", () => {
  test("/healthz says that the process is alive, /readyz that it can take work", async () => {
    const server = await startTestServer();
    const alive = await request(server.publicUrl).get("/healthz");
    expect([alive.status, alive.body]).toEqual([200, { status: "ok" }]);
    const ready = await request(server.publicUrl).get("/readyz");
    expect([ready.status, ready.body]).toEqual([200, { status: "ready" }]);
    expect((await request(server.publicUrl).head("/readyz")).status).toBe(200);
  });

  test("with less free space than is to be left, /readyz and creating answer 507, /healthz goes on", async () => {
    const server = await startTestServer({ minFreeBytes: "8000TiB" });
    const ready = await request(server.publicUrl).get("/readyz");
    expect(ready.status).toBe(507);
    expect(ready.type).toBe(problem);
    expect(ready.body).toMatchObject({ code: "storage_full", retryable: true });
    expect(ready.headers["retry-after"]).toBe("5");
    const create = await request(server.publicUrl)
      .post("/files")
      .set({ ...tusHeaders, "Upload-Length": "5" });
    expect(create.status).toBe(507);
    expect((await request(server.publicUrl).get("/healthz")).status).toBe(200);
    expect((await request(server.publicUrl).get("/")).text).toContain("less free space");
  });
});

describe("the page at /", () => {
  test("tells version, URLs and health, and may load and run nothing", async () => {
    const server = await startTestServer();
    const answer = await request(server.publicUrl).get("/");
    expect(answer.status).toBe(200);
    expect(answer.type).toBe("text/html");
    expect(answer.text).toContain(server.mcpUrl);
    expect(answer.text).toContain(server.tusUrl);
    expect(answer.text).toMatch(/Version<\/dt><dd>\d+\.\d+\.\d+/);
    expect(answer.text).toMatch(/Health<\/dt><dd>ready/);
    const style = /<style>([\s\S]*)<\/style>/.exec(answer.text)?.[1] ?? "";
    const hash = createHash("sha256").update(style).digest("base64");
    expect(answer.headers["content-security-policy"]).toBe(
      `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    );
    expect(answer.headers["x-content-type-options"]).toBe("nosniff");
  });

  test("escapes what it shows", () => {
    const page = landingPage({ version: "<b>", publicUrl: "http://a'\"&b", health: "<script>" });
    expect(page).not.toMatch(/<b>|<script>|a'"/);
    expect(escapeHtml(`<&>"'`)).toBe("&lt;&amp;&gt;&quot;&#39;");
  });
});

describe("what is not there", () => {
  test.each(["/nowhere", "/files/a/b/c", "/healthz/x", "/metrics", "/d"])(
    "%s answers 404 as problem+json",
    async (path) => {
      const server = await startTestServer();
      const answer = await request(server.publicUrl).get(path);
      expect(answer.status).toBe(404);
      expect(answer.type).toBe(problem);
      expect(answer.body).toMatchObject({ code: "unknown_handle", status: 404 });
    },
  );

  test.each(["/", "/healthz", "/readyz"])("POST %s answers 405 and names the methods", async (path) => {
    const server = await startTestServer();
    const answer = await request(server.publicUrl).post(path);
    expect([answer.status, answer.headers.allow]).toEqual([405, "GET, HEAD"]);
    expect(answer.body).toMatchObject({ code: "method_not_allowed" });
  });
});

describe("the log of requests", () => {
  test("has one line each at debug, under the id of the answer, without tickets", async () => {
    const server = await startTestServer();
    const url = await created(server.publicUrl, { "Upload-Length": "5" });
    const ticket = url.split("/").at(-1) ?? "";
    const answer = await request(url).head("").set(tusHeaders).set("X-Request-ID", "mine-1");
    expect(answer.headers["x-request-id"]).toBe("mine-1");
    await request(`${url}/name`).put("").send("hello");
    await request(server.publicUrl).get(`/d/${ticket}/name`);
    const lines = server.lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: "debug",
        event: "request",
        requestId: "mine-1",
        method: "HEAD",
        status: 200,
        path: "/files/[ticket]",
      }),
    );
    expect(lines).toContainEqual(
      expect.objectContaining({ method: "PUT", path: "/files/[ticket]/name", status: 200 }),
    );
    expect(lines).toContainEqual(
      expect.objectContaining({ method: "GET", path: "/d/[ticket]/name", status: 404 }),
    );
    expect(server.lines.join("")).not.toContain(ticket);
  });
});
