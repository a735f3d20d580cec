import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import path from "node:path";
import tls from "node:tls";
import { describe, expect, it, onTestFinished } from "vitest";
import { AllowedAddresses } from "../../../src/tasks/kinds/import/allowed-addresses.ts";
import { pinnedGet } from "../../../src/tasks/kinds/import/pinned-request.ts";
import { contentOf } from "../../support/engine.ts";
import { describeWithProgram } from "../../support/needs-program.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { filenames, impatient, openKinds, resultOf, runKind } from "./kinds-store.ts";
import { sendFile, serveSource } from "./source-server.ts";

const bytes = randomBytes(10_000);
const sha256 = createHash("sha256").update(bytes).digest("hex");

describe("the addresses that may be fetched from", () => {
  const none = new AllowedAddresses([]);

  it.each([
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::8.8.8.8",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "",
    "localhost",
    "127.1",
    "0x7f000001",
    "2130706433",
  ])("do not include %s", (address) => {
    expect(none.allowsAddress(address)).toBe(false);
  });

  it.each([
    "1.1.1.1",
    "8.8.8.8",
    "172.15.0.1",
    "172.32.0.1",
    "100.63.0.1",
    "2606:4700:4700::1111",
    "::ffff:8.8.8.8",
  ])("include %s", (address) => {
    expect(none.allowsAddress(address)).toBe(true);
  });

  it("are widened by the operator's addresses and networks, and by nothing near them", () => {
    const some = new AllowedAddresses([
      "10.1.0.0/16",
      "127.0.0.1",
      "[fd00::]/8".replace(/[[\]]/g, ""),
      "files.internal",
    ]);
    for (const address of ["10.1.2.3", "127.0.0.1", "::ffff:127.0.0.1", "fd00::5"])
      expect(some.allowsAddress(address)).toBe(true);
    for (const address of ["10.2.0.1", "127.0.0.2", "fe80::1"])
      expect(some.allowsAddress(address)).toBe(false);
    expect(some.allowsHost("Files.Internal.")).toBe(true);
    expect(some.allowsHost("other.internal")).toBe(false);
  });

  it.each(["", "10.0.0.0/33", "10.1", "300.1.1.1", "http://host", "host:80", "a b", "127.1/8"])(
    "cannot be widened by %j",
    (entry) => {
      expect(() => new AllowedAddresses([entry])).toThrow(/no host name, address or network/);
    },
  );
});

describe("file_import refuses", () => {
  it.each([
    "http://127.0.0.1/x",
    "http://127.1/x",
    "http://0x7f000001/x",
    "http://2130706433/x",
    "http://[::1]/x",
    "http://[::ffff:7f00:1]/x",
    "http://169.254.169.254/latest/meta-data",
    "https://10.0.0.1/x",
    "http://0.0.0.0/x",
    "http://[fd00::1]/x",
  ])("the address in %s", async (url) => {
    const store = await openKinds({ kinds: { allowImport: [] } });
    const task = await runKind(store, "file_import", { url });
    expect(task.error).toMatchObject({
      code: "url_not_allowed",
      retryable: false,
      recoveryHint: expect.stringContaining("LONGSHORE_ALLOW_IMPORT"),
    });
  });

  it("a name all of whose addresses are private, before it connects", async () => {
    const source = await serveSource((request, response, account) =>
      sendFile(request, response, account, { bytes }),
    );
    const resolve = async () => ["127.0.0.1", "::1"];
    const store = await openKinds({ kinds: { allowImport: [], imports: { resolve, patience: impatient } } });
    const task = await runKind(store, "file_import", { url: `http://evil.example:${source.port}/x` });
    expect(task.error).toMatchObject({
      code: "url_not_allowed",
      message: expect.stringContaining("evil.example"),
    });
    expect(source.requests).toEqual([]);
  });

  it("localhost by its name, with the machine's own resolver", async () => {
    const store = await openKinds({ kinds: { allowImport: [] } });
    expect((await runKind(store, "file_import", { url: "http://localhost:1/x" })).error).toMatchObject({
      code: "url_not_allowed",
    });
  });

  it.each([
    "http://10.0.0.1/x",
    "http://[::1]:1/x",
    "//169.254.169.254/x",
    "http://other.example/x",
    "file:///etc/passwd",
    "ftp://127.0.0.1/x",
    "http://u:p@127.0.0.1/x",
  ])("a redirect to %s", async (location) => {
    const source = await serveSource((_request, response) => response.writeHead(302, { location }).end());
    const resolve = async (host: string) => (host === "other.example" ? ["192.168.0.1"] : []);
    const store = await openKinds({ kinds: { imports: { resolve, patience: impatient } } });
    const task = await runKind(store, "file_import", { url: source.url });
    expect(["url_not_allowed", "invalid_param"]).toContain(task.error?.code);
    expect(source.requests).toHaveLength(1);
    expect(await filenames(store)).toEqual([]);
  });

  it("a name that is public when asked first and private when asked again", async () => {
    let asked = 0;
    const resolve = async () => (++asked === 1 ? ["127.0.0.1"] : ["127.0.0.2"]);
    let request = 0;
    const source = await serveSource((incoming, response, account) => {
      request += 1;
      sendFile(incoming, response, account, { bytes, ...(request === 1 && { breakAfter: 5_000 }) });
    });
    const store = await openKinds({ kinds: { imports: { resolve, patience: impatient } } });
    const task = await runKind(store, "file_import", { url: `http://turning.example:${source.port}/x` });
    expect(task.error).toMatchObject({ code: "url_not_allowed" });
    expect(await filenames(store)).toEqual([]);
  });

  it("more than five redirects, and follows five", async () => {
    const source = await serveSource((request, response, account) => {
      const left = Number(request.url?.slice(1));
      if (left > 0) response.writeHead(307, { location: `/${left - 1}` }).end();
      else sendFile(request, response, account, { bytes });
    });
    const store = await openKinds();
    expect(await resultOf(store, "file_import", { url: `${source.url}/5` })).toMatchObject({ sha256 });
    const task = await runKind(store, "file_import", { url: `${source.url}/6` });
    expect(task.error).toMatchObject({
      code: "task_failed",
      message: expect.stringContaining("more than 5 times"),
    });
  });

  it.each([
    ["no URL at all", "invalid_param"],
    ["ftp://example.com/x", "url_not_allowed"],
    ["data:text/plain,hello", "url_not_allowed"],
    ["https://user:secret@example.com/x", "invalid_param"],
  ])("%s", async (url, code) => {
    const store = await openKinds();
    const task = await runKind(store, "file_import", { url });
    expect(task.error).toMatchObject({ code });
    expect(task.error?.message).not.toContain("secret");
  });
});

describe("a pinned request", () => {
  it("connects to the checked address although the name leads elsewhere by now, and to an allowed one among others", async () => {
    const source = await serveSource((request, response) => response.end(request.headers.host));
    const parts = {
      allowed: new AllowedAddresses(["127.0.0.1"]),
      resolve: async () => ["10.255.255.1", "127.0.0.1", "::1"],
      idleMs: 5_000,
    };
    const url = new URL(`http://name.invalid:${source.port}/`);
    const response = await pinnedGet(url, {}, parts, new AbortController().signal);
    expect(response.socket.remoteAddress).toBe("127.0.0.1");
    expect((await contentOf(response)).toString()).toBe(url.host);
  });
});

describeWithProgram("openssl", "file_import over https", () => {
  async function serveTls(answer: Parameters<typeof createServer>[1] & object): Promise<number> {
    const dir = await tempDir();
    const [key, cert] = [path.join(dir, "key.pem"), path.join(dir, "cert.pem")];
    const subject = ["-subj", "/CN=files.test", "-addext", "subjectAltName=DNS:files.test"];
    execFileSync(
      "openssl",
      [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-keyout",
        key,
        "-out",
        cert,
        "-days",
        "2",
        ...subject,
      ],
      { stdio: "ignore" },
    );
    const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, answer);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const before = tls.getCACertificates("default");
    tls.setDefaultCACertificates([...before, readFileSync(cert, "utf8")]);
    onTestFinished(() => {
      tls.setDefaultCACertificates(before);
      server.closeAllConnections();
      server.close();
    });
    return (server.address() as AddressInfo).port;
  }
  const resolve = async () => ["127.0.0.1"];

  it("checks the certificate against the name, although the address was chosen here", async () => {
    const port = await serveTls((_request, response) => response.end(bytes));
    const store = await openKinds({
      kinds: { imports: { resolve, patience: { attempts: 1, firstPauseMs: 1 } } },
    });
    expect(await resultOf(store, "file_import", { url: `https://files.test:${port}/x` })).toMatchObject({
      sha256,
    });
    const task = await runKind(store, "file_import", { url: `https://other.test:${port}/x` });
    expect(task.error).toMatchObject({
      code: "task_failed",
      message: expect.stringContaining("ERR_TLS_CERT_ALTNAME_INVALID"),
    });
  });

  it("refuses a redirect to http", async () => {
    const plain = await serveSource((request, response, account) =>
      sendFile(request, response, account, { bytes }),
    );
    const port = await serveTls((_request, response) =>
      response.writeHead(301, { location: plain.url }).end(),
    );
    const store = await openKinds({ kinds: { imports: { resolve, patience: impatient } } });
    const task = await runKind(store, "file_import", { url: `https://files.test:${port}/x` });
    expect(task.error).toMatchObject({
      code: "url_not_allowed",
      message: expect.stringContaining("from https to http"),
    });
    expect(plain.requests).toEqual([]);
  });
});
