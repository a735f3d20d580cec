import request from "supertest";
import { describe, expect, test } from "vitest";
import { forwardedBase } from "../../src/server/forwarded.ts";
import { startTestServer } from "../support/running-server.ts";
import { tusHeaders } from "../support/tus-requests.ts";

const told = (fields: Readonly<Record<string, string>>, fallback = "http://127.0.0.1:8484") =>
  forwardedBase((name) => fields[name], fallback);

describe("the base that a proxy tells", () => {
  test.each([
    [{ "x-forwarded-proto": "https", "x-forwarded-host": "files.example.com" }, "https://files.example.com"],
    [
      { "x-forwarded-proto": "https, http", "x-forwarded-host": "a.example:8443, b.example" },
      "https://a.example:8443",
    ],
    [{ "x-forwarded-host": "[::1]:9000" }, "http://[::1]:9000"],
    [{ "x-forwarded-proto": "HTTPS" }, "https://127.0.0.1:8484"],
    [{}, null],
    [{ "x-forwarded-proto": "javascript" }, null],
    [{ "x-forwarded-host": "evil.example/path" }, null],
    [{ "x-forwarded-host": "user@evil.example" }, null],
    [{ "x-forwarded-host": "a.example:99999" }, null],
  ])("by %j is %s", (fields, base) => {
    expect(told(fields)).toBe(base);
  });

  test("keeps the path of the public URL", () => {
    expect(told({ "x-forwarded-host": "a.example" }, "https://b.example/up")).toBe("https://a.example/up");
  });
});

describe("X-Forwarded-Proto and X-Forwarded-Host", () => {
  const fields = { "X-Forwarded-Proto": "https", "X-Forwarded-Host": "files.example.com" };
  const create = (server: { publicUrl: string }) =>
    request(server.publicUrl)
      .post("/files")
      .set({ ...tusHeaders, ...fields, "Upload-Length": "5" });
  const callTool = (server: { mcpUrl: string }) =>
    request(server.mcpUrl)
      .post("")
      .set({ ...fields, Accept: "application/json, text/event-stream" })
      .send({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name: "upload_create", arguments: { filename: "a.bin", size: 5 } },
      });

  test("change nothing by default", async () => {
    const server = await startTestServer();
    expect((await create(server)).headers.location).toContain(`${server.publicUrl}/files/`);
    expect((await callTool(server)).text).toContain(`${server.publicUrl}/files/`);
    expect((await callTool(server)).text).not.toContain("files.example.com");
  });

  test("give the base of every URL where the proxy is trusted, for HTTP and for tools", async () => {
    const server = await startTestServer({ trustProxy: "1" });
    expect((await create(server)).headers.location).toMatch(/^https:\/\/files\.example\.com\/files\//);
    expect((await callTool(server)).text).toContain("https://files.example.com/files/");
    expect((await callTool(server)).text).not.toContain(server.publicUrl);
  });

  test("do not stand in for Host, even where the proxy is trusted", async () => {
    const server = await startTestServer({ trustProxy: "1" });
    expect((await create(server).set("Host", "files.example.com")).status).toBe(403);
  });
});
