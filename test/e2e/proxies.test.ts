/**
 * The built server behind nginx and Caddy, with the settings that docs/operations.md gives, and with those that it warns of. What is
 * promised without a proxy holds behind one, as far as the proxy lets it.
 */
import { readFile, writeFile } from "node:fs/promises";
import { connect as connectSocket } from "node:net";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { curl, tusJs } from "../support/client-programs.ts";
import { freePort } from "../support/free-port.ts";
import { codeBlocks, page, section } from "../support/markdown.ts";
import { connect, facts } from "../support/mcp-clients.ts";
import { describeWithProgram } from "../support/needs-program.ts";
import {
  http,
  offsetOf,
  open,
  patchHeaders,
  problem,
  tusCreated,
  tusHead,
  tusPatch,
} from "../support/plain-http.ts";
import {
  caddyAuthority,
  proxyFolder,
  type RunningProxy,
  selfSigned,
  startCaddy,
  startNginx,
} from "../support/proxies.ts";
import { Sample } from "../support/sample.ts";
import { type ServerProcess, startServer, useFolder } from "../support/server-process.ts";
import { waitUntil } from "../support/wait-until.ts";

const mebibyte = 1 << 20;
const operations = page("docs/operations.md");
const folder = useFolder();
const name = "files.localhost";

const reprDigest = (sample: Sample): string =>
  `sha-256=:${Buffer.from(sample.sha256, "hex").toString("base64")}:`;

/** The same path at another front. */
const at = (front: string, url: string): string => front + new URL(url).pathname;

const answers = (url: string) => async (): Promise<boolean> =>
  (await http("GET", `${url}/readyz`, { withinMs: 2000 })).status === 200;

/** What is the same behind every good front, which is reached at `front()` over plain HTTP. */
function carriesEverything(front: () => string): void {
  test("carries tus-js-client, in chunks and in one piece, from where another left off, to the right digest", async () => {
    const sample = new Sample("tus-js", 5 * mebibyte);
    const endpoint = `${front()}/files`;
    const uploadUrl = at(front(), await tusCreated(front(), sample.sizeBytes));
    const stopped = new Error("stopped here");
    const first = tusJs(sample.bytes(), {
      endpoint,
      uploadUrl,
      chunkSize: mebibyte,
      onBytes(upload, acknowledged) {
        if (acknowledged >= 2 * mebibyte) void upload.abort().then(() => upload.options.onError?.(stopped));
      },
    });
    await expect(first).rejects.toBe(stopped);
    const offset = offsetOf(await tusHead(uploadUrl));
    expect(offset).toBeGreaterThanOrEqual(2 * mebibyte);
    expect(offset).toBeLessThan(sample.sizeBytes);
    await tusJs(sample.bytes(), { endpoint, uploadUrl });
    expect((await tusHead(uploadUrl)).headers["repr-digest"]).toBe(reprDigest(sample));
  });

  test("keeps what had come of a PATCH whose client dies half-way, and the rest ends it right", async () => {
    const sample = new Sample("half-way", 4 * mebibyte);
    const url = at(front(), await tusCreated(front(), sample.sizeBytes));
    const request = open("PATCH", url, patchHeaders(0, sample.sizeBytes));
    await request.write(sample.bytes(0, 1_500_000));
    await waitUntil(() => request.request.writableLength === 0);
    // Through two sockets and a proxy: what it has not handed on yet is lost with the connection.
    await new Promise((resolve) => setTimeout(resolve, 200));
    request.destroy();
    let offset = 0;
    await waitUntil(async () => {
      offset = offsetOf(await tusHead(url));
      return offset > 0;
    });
    expect(offset).toBeGreaterThanOrEqual(mebibyte);
    const rest = await tusPatch(url, offset, sample.bytes(offset));
    expect([rest.status, rest.headers["repr-digest"]]).toEqual([204, reprDigest(sample)]);
  });

  test("lets a PATCH from a wrong offset know the true one, and a refused one say why", async () => {
    const url = at(front(), await tusCreated(front(), 10));
    const stale = await tusPatch(url, 5, "56789");
    expect([stale.status, problem(stale).code, offsetOf(stale)]).toEqual([409, "offset_mismatch", 0]);
    const wrong = await tusPatch(url, 0, "01234", { "Upload-Checksum": "sha1 AAAAAAAAAAAAAAAAAAAAAAAAAAA=" });
    expect([wrong.status, problem(wrong).code, offsetOf(wrong)]).toEqual([460, "checksum_mismatch", 0]);
  });

  test("carries curl -T with Expect: 100-continue", async () => {
    const sample = new Sample("curl", 3 * mebibyte);
    const file = path.join(folder.path, `curl-${new URL(front()).port}.bin`);
    await writeFile(file, sample.bytes());
    const url = at(front(), await tusCreated(front(), sample.sizeBytes));
    const { status, stdout, stderr } = await curl("-f", "-H", "Expect: 100-continue", "-T", file, url, "-v");
    expect([status, stderr.includes("< HTTP/1.1 100 Continue")]).toEqual([0, true]);
    expect(JSON.parse(stdout)).toMatchObject({ status: "complete", sha256: sample.sha256 });
  });

  test("carries downloads: whole, one range, several ranges, and only what has changed", async () => {
    const sample = new Sample("download", 8 * mebibyte);
    const url = at(front(), await tusCreated(front(), sample.sizeBytes));
    const stored = await tusPatch(url, 0, sample.bytes());
    const client = await connect("a client of 2026-07-28", `${front()}/mcp`);
    const handle = stored.headers["longshore-handle"];
    const download = at(front(), String((await facts(client, "file_download", { handle })).url));
    const whole = await http("GET", download);
    expect([whole.status, whole.headers["repr-digest"]]).toEqual([200, reprDigest(sample)]);
    expect(whole.body.equals(sample.bytes())).toBe(true);
    const range = await http("GET", download, { headers: { Range: "bytes=1000000-2999999" } });
    expect([range.status, range.headers["content-range"]]).toEqual([
      206,
      `bytes 1000000-2999999/${sample.sizeBytes}`,
    ]);
    expect(range.body.equals(sample.bytes(1_000_000, 3_000_000))).toBe(true);
    const several = await http("GET", download, { headers: { Range: "bytes=0-99,5000000-5000099" } });
    expect([several.status, several.headers["content-type"]]).toEqual([
      206,
      expect.stringContaining("multipart/byteranges; boundary="),
    ]);
    expect(several.body.includes(sample.bytes(0, 100))).toBe(true);
    expect(several.body.includes(sample.bytes(5_000_000, 5_000_100))).toBe(true);
    const etag = String(whole.headers.etag);
    expect((await http("GET", download, { headers: { "If-None-Match": etag } })).status).toBe(304);
    const other = await http("GET", download, { headers: { Range: "bytes=0-9", "If-Range": '"other"' } });
    expect(other.status).toBe(200);
    const head = await http("HEAD", download);
    expect([head.status, head.headers["content-length"]]).toEqual([200, String(sample.sizeBytes)]);
  });

  test("carries MCP for clients of both eras, and an answer that is waited for comes when it is there", async () => {
    for (const kind of ["a client of 2026-07-28", "a client of 2025-11-25"] as const) {
      const client = await connect(kind, `${front()}/mcp`);
      const { handle, upload } = await facts(client, "upload_create", { filename: "a.bin", size: 5 });
      const since = performance.now();
      expect((await facts(client, "upload_status", { handle, waitMs: 1000 })).status).toBe("receiving");
      expect(performance.now() - since).toBeGreaterThan(900);
      const waiting = facts(client, "upload_status", { handle, waitMs: 40_000 });
      expect((await http("PUT", at(front(), upload.put), { body: "hello" })).status).toBe(200);
      expect((await waiting).status).toBe("complete");
      expect(performance.now() - since).toBeLessThan(15_000);
    }
  });
}

/** With TLS in front: `ask` is curl with the certificate's authority. */
async function overTls(base: string, authority: string) {
  const ask = (...args: string[]) => curl("--cacert", authority, ...args);
  const created = await ask(
    "-f",
    "-i",
    "-X",
    "POST",
    "-H",
    "Tus-Resumable: 1.0.0",
    "-H",
    "Upload-Length: 5",
    `${base}/files`,
  );
  expect(created.status).toBe(0);
  const [, location = ""] = /^location: (\S+)/im.exec(created.stdout) ?? [];
  const call = {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "upload_create", arguments: { filename: "a.bin", size: 5 } },
  };
  const accept = "Accept: application/json, text/event-stream";
  const called = await ask(
    "-f",
    "-H",
    accept,
    "-H",
    "Content-Type: application/json",
    "-d",
    JSON.stringify(call),
    `${base}/mcp`,
  );
  expect(called.status).toBe(0);
  const [put = ""] = /https?:\/\/[^"\\ ]+\/files\/[^"\\ ]+/.exec(called.stdout) ?? [];
  return { ask, location, put };
}

describeWithProgram("nginx", "behind nginx", () => {
  let server: ServerProcess;
  let trusting: ServerProcess;
  let nginx: RunningProxy;
  let certificate = "";
  let [front, buffering, limited, secure, untrusted] = ["", "", "", "", ""];

  beforeAll(async () => {
    const home = await proxyFolder();
    const ports = [
      await freePort(),
      await freePort(),
      await freePort(),
      await freePort(),
      await freePort(),
    ] as const;
    [front, buffering, limited] = [ports[0], ports[1], ports[2]].map(
      (port) => `http://127.0.0.1:${port}`,
    ) as [string, string, string];
    [secure, untrusted] = [`https://${name}:${ports[3]}`, `https://${name}:${ports[4]}`];
    server = await startServer({ dataDir: path.join(folder.path, "nginx") });
    trusting = await startServer({ dataDir: path.join(folder.path, "trusting"), flags: ["--trust-proxy"] });
    const { cert, key } = selfSigned(home, name);
    certificate = cert;
    const [plain = ""] = codeBlocks(section(operations, "## Behind nginx"), "nginx");
    const [tls = ""] = codeBlocks(section(operations, "### With TLS"), "nginx");
    const plainAt = (port: number) =>
      plain
        .replace("listen 80;", `listen 127.0.0.1:${port};`)
        .replace("files.example.com", name)
        .replace("127.0.0.1:8484", `127.0.0.1:${server.port}`);
    const tlsAt = (port: number, upstream: number) =>
      tls
        .replace("listen 443 ssl;", `listen 127.0.0.1:${port} ssl;`)
        .replace("server_name files.example.com", `server_name ${name}`)
        .replace("/etc/ssl/files.example.com.pem", cert)
        .replace("/etc/ssl/files.example.com.key", key)
        .replace("127.0.0.1:8484", `127.0.0.1:${upstream}`);
    const sites = [
      plainAt(ports[0]),
      plainAt(ports[1]).replace("proxy_request_buffering off;", "proxy_request_buffering on;"),
      plainAt(ports[2]).replace("client_max_body_size 0;", ""),
      tlsAt(ports[3], trusting.port),
      // As the server said it: nginx would make its own address of the upstream's.
      tlsAt(ports[4], server.port).replace(
        "proxy_buffering off;",
        "proxy_buffering off; proxy_redirect off;",
      ),
    ];
    nginx = await startNginx(home, sites.join("\n"), answers(front));
  });
  afterAll(async () => {
    await nginx?.stop();
    expect([await server?.stop(), await trusting?.stop()]).toEqual([0, 0]);
  });

  carriesEverything(() => front);

  test("with request buffering a PATCH comes whole or not at all: a client that dies half-way is told offset 0, which is true", async () => {
    const sample = new Sample("buffered", 3 * mebibyte);
    const url = at(buffering, await tusCreated(buffering, sample.sizeBytes));
    const request = open("PATCH", url, patchHeaders(0, sample.sizeBytes));
    await request.write(sample.bytes(0, 2 * mebibyte));
    await waitUntil(() => request.request.writableLength === 0);
    request.destroy();
    expect(offsetOf(await tusHead(url))).toBe(0);
    const whole = await tusPatch(url, 0, sample.bytes());
    expect([whole.status, whole.headers["repr-digest"]]).toEqual([204, reprDigest(sample)]);
  });

  test("with nginx's own limit larger bodies get 413 from nginx, nothing is stored, and smaller chunks lead to the end", async () => {
    const sample = new Sample("limited", 3 * mebibyte);
    const created = at(limited, await tusCreated(limited, sample.sizeBytes));
    const refused = await tusPatch(created, 0, sample.bytes());
    expect([refused.status, String(refused.headers.server)]).toEqual([413, expect.stringMatching(/^nginx/)]);
    expect(offsetOf(await tusHead(created))).toBe(0);
    const options = { endpoint: `${limited}/files`, uploadUrl: created };
    await expect(tusJs(sample.bytes(), options)).rejects.toThrow(/413/);
    await tusJs(sample.bytes(), { ...options, chunkSize: 900_000 });
    expect((await tusHead(created)).headers["repr-digest"]).toBe(reprDigest(sample));
  });

  test("that ends TLS and is trusted gives every URL its own scheme and name, and they work", async () => {
    const { ask, location, put } = await overTls(secure, certificate);
    expect(location.startsWith(`${secure}/files/`)).toBe(true);
    expect(put.startsWith(`${secure}/files/`)).toBe(true);
    const sample = new Sample("tls", 5);
    const file = path.join(folder.path, "tls.bin");
    await writeFile(file, sample.bytes());
    const sent = await ask("-f", "-T", file, put);
    expect(JSON.parse(sent.stdout)).toMatchObject({ status: "complete", sha256: sample.sha256 });
    // What a caller says of itself never gets through.
    const faked = await ask(
      "-f",
      "-i",
      "-X",
      "POST",
      "-H",
      "Tus-Resumable: 1.0.0",
      "-H",
      "Upload-Length: 5",
      "-H",
      "X-Forwarded-Host: evil.example",
      "-H",
      "X-Forwarded-Proto: http",
      `${secure}/files`,
    );
    expect(faked.stdout).toContain(`${secure}/files/`);
    expect(faked.stdout).not.toContain("evil.example");
  });

  test("that ends TLS and is not trusted is not believed: URLs stay what the server was told", async () => {
    const { location, put } = await overTls(untrusted, certificate);
    expect(location.startsWith(`${server.url}/files/`)).toBe(true);
    expect(put.startsWith(`${server.url}/files/`)).toBe(true);
  });

  test("with a foreign Host handed on is refused", async () => {
    const answer = await http("GET", `${front}/readyz`, { headers: { Host: "elsewhere.example" } });
    expect(answer.status).toBe(403);
  });

  test("leaves no lease behind when a client dies before its first byte", async () => {
    const url = at(front, await tusCreated(front, 10));
    const socket = connectSocket(Number(new URL(front).port), "127.0.0.1");
    socket.on("error", () => {});
    const fields = Object.entries(patchHeaders(0, 10)).map(([field, value]) => `${field}: ${value}`);
    socket.write(
      [`PATCH ${new URL(url).pathname} HTTP/1.1`, "Host: 127.0.0.1", ...fields, "", ""].join("\r\n"),
    );
    await new Promise((resolve) => setTimeout(resolve, 100));
    socket.destroy();
    await waitUntil(async () => (await tusPatch(url, 0, "0123456789")).status === 204);
  });
});

describeWithProgram("caddy", "behind Caddy", () => {
  let server: ServerProcess;
  let caddy: RunningProxy;
  let [front, secure] = ["", ""];
  let authority = "";

  beforeAll(async () => {
    const home = await proxyFolder();
    const [plainPort, tlsPort, upstream] = [await freePort(), await freePort(), await freePort()];
    front = `http://127.0.0.1:${plainPort}`;
    secure = `https://${name}:${tlsPort}`;
    server = await startServer({
      dataDir: path.join(folder.path, "caddy"),
      port: upstream,
      flags: ["--public-url", secure],
    });
    const [block = ""] = codeBlocks(section(operations, "## Behind Caddy"), "caddy");
    const site = (address: string) =>
      block.replace("files.example.com", address).replace("127.0.0.1:8484", `127.0.0.1:${upstream}`);
    caddy = await startCaddy(home, `${site(front)}\n${site(secure)}`, answers(front));
    authority = path.join(home, "authority.pem");
    await waitUntil(async () => (await caddyAuthority(home).catch(() => "")) !== "");
    await writeFile(authority, await caddyAuthority(home));
    expect(await readFile(authority, "utf8")).toContain("BEGIN CERTIFICATE");
  });
  afterAll(async () => {
    await caddy?.stop();
    expect(await server?.stop()).toBe(0);
  });

  carriesEverything(() => front);

  test("that ends TLS URLs begin with the public URL, and they work", async () => {
    // Its certificate is made when it is asked for first.
    await waitUntil(async () => (await curl("-f", "--cacert", authority, `${secure}/readyz`)).status === 0);
    const { ask, location, put } = await overTls(secure, authority);
    expect(location.startsWith(`${secure}/files/`)).toBe(true);
    const sample = new Sample("tls", 5);
    const file = path.join(folder.path, "caddy-tls.bin");
    await writeFile(file, sample.bytes());
    const sent = await ask("-f", "-T", file, put);
    expect(JSON.parse(sent.stdout)).toMatchObject({ status: "complete", sha256: sample.sha256 });
  });
});
