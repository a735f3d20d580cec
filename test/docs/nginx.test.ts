/** The nginx configuration of docs/operations.md, run as it stands but for ports and names. */
import { spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import path from "node:path";
import { expect, test } from "vitest";
import { follow, startBuiltServer } from "../support/built-server.ts";
import { freePort } from "../support/free-port.ts";
import { codeBlocks, page, section } from "../support/markdown.ts";
import { describeWithProgram } from "../support/needs-program.ts";
import { tempDir } from "../support/temp-dir.ts";
import { offsetMedia, sha256, someBytes, tusHeaders } from "../support/tus-requests.ts";
import { waitUntil } from "../support/wait-until.ts";

type Fields = Readonly<Record<string, string>>;

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

const [block = ""] = codeBlocks(section(page("docs/operations.md"), "## Behind nginx"), "nginx");

/** Starts both; the host name is one that every machine resolves to itself. */
async function behindNginx() {
  const [folder, port] = [await tempDir(), await freePort()];
  const publicUrl = `http://files.localhost:${port}`;
  const server = await startBuiltServer(await tempDir(), ["--public-url", publicUrl]);
  const listening = /"event":"server\.started".*?"port":(\d+)/.exec(server.stderr())?.[1] ?? "";
  const site = block
    .replace("listen 80;", `listen 127.0.0.1:${port};`)
    .replace("files.example.com", "files.localhost")
    .replace("127.0.0.1:8484", `127.0.0.1:${listening}`);
  const temp = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  for (const name of temp) await mkdir(path.join(folder, name));
  const paths = temp.map((name) => `${name}_temp_path ${folder}/${name};`).join(" ");
  const conf = path.join(folder, "nginx.conf");
  await writeFile(
    conf,
    `daemon off; master_process off; pid ${folder}/pid;\nevents {}\nhttp { access_log off; ${paths}\n${site}\n}\n`,
  );
  follow(
    spawn("nginx", ["-p", folder, "-e", `${folder}/error.log`, "-c", conf], {
      stdio: ["ignore", "pipe", "pipe"],
    }),
  );
  const host = { Host: `files.localhost:${port}` };
  /** By node:http, which lets Host be set. */
  const ask = (method: string, target: string, fields: Fields = {}) =>
    request(`http://127.0.0.1:${port}${target}`, { method, headers: { ...host, ...fields } });
  const send = (
    method: string,
    target: string,
    fields: Fields = {},
    body?: Buffer | string,
  ): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const outgoing = ask(method, target, fields);
      outgoing.on("error", reject).on("response", (incoming) => {
        const pieces: Buffer[] = [];
        incoming.on("data", (piece: Buffer) => pieces.push(piece));
        incoming.on("end", () =>
          resolve({
            status: incoming.statusCode ?? 0,
            headers: incoming.headers,
            body: Buffer.concat(pieces),
          }),
        );
      });
      outgoing.end(body);
    });
  await waitUntil(() =>
    send("GET", "/readyz").then(
      ({ status }) => status === 200,
      () => false,
    ),
  );
  const create = async (sizeBytes: number) => {
    const { status, headers } = await send("POST", "/files", {
      ...tusHeaders,
      "Upload-Length": String(sizeBytes),
    });
    expect(status).toBe(201);
    expect(headers.location).toMatch(new RegExp(`^${publicUrl}/files/`));
    return { target: new URL(headers.location ?? "").pathname, handle: String(headers["longshore-handle"]) };
  };
  const callTool = async (name: string, args: object): Promise<string> => {
    const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } };
    const fields = { "Content-Type": "application/json", Accept: "application/json, text/event-stream" };
    const { body } = await send("POST", "/mcp", fields, JSON.stringify(call));
    return body.toString().replaceAll('\\"', '"');
  };
  return { ask, send, create, callTool, publicUrl };
}

describeWithProgram("nginx", "the nginx configuration of docs/operations.md", () => {
  test("carries an upload and its download, larger than nginx would take by default", async () => {
    const { send, create, callTool, publicUrl } = await behindNginx();
    const bytes = someBytes(3 * 2 ** 20);
    const { target } = await create(bytes.length);
    const put = await send("PUT", target, {}, bytes);
    expect(put.status).toBe(200);
    const { handle, ...stored } = JSON.parse(put.body.toString()) as { handle: string };
    expect(stored).toMatchObject({ status: "complete", sha256: sha256(bytes) });

    const [url = ""] = /http:[^" ]*\/d\/[^" ]*/.exec(await callTool("file_download", { handle })) ?? [];
    expect(url.startsWith(publicUrl)).toBe(true);
    const download = await send("GET", new URL(url).pathname);
    expect([download.status, sha256(download.body)]).toEqual([200, sha256(bytes)]);
  });

  test("hands on what has come when a connection breaks", async () => {
    const { ask, send, create, callTool } = await behindNginx();
    const { target, handle } = await create(3 * 2 ** 20);
    const patch = ask("PATCH", target, {
      ...tusHeaders,
      "Upload-Offset": "0",
      "Content-Type": offsetMedia,
      "Content-Length": String(3 * 2 ** 20),
    });
    patch.on("error", () => {});
    await new Promise((sent) => patch.write(someBytes(2 ** 20), sent));
    // Asked for by the tool, which never disturbs a writer: what has come is committed every 2 s.
    const status = async () =>
      Number(/"offset":(\d+)/.exec(await callTool("upload_status", { handle }))?.[1]);
    await waitUntil(async () => (await status()) === 2 ** 20);
    patch.destroy();
    expect((await send("HEAD", target, tusHeaders)).headers["upload-offset"]).toBe(String(2 ** 20));
  });
});
