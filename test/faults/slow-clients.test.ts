/** Five hundred senders that have stopped in the middle: others go on, and waiting costs neither time of the processor nor memory. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { connect as connectSocket, type Socket } from "node:net";
import { afterAll, expect, test } from "vitest";
import { connect, facts } from "../support/mcp-clients.ts";
import { http, offsetOf, patchHeaders, tusCreated, tusHead, tusPatch } from "../support/plain-http.ts";
import { Sample } from "../support/sample.ts";
import { memoryOf, useServer } from "../support/server-process.ts";
import { waitUntil } from "../support/wait-until.ts";

const count = 500;
const sent = 50_000;

const running = useServer();
const sockets: Socket[] = [];
afterAll(() => {
  for (const socket of sockets) socket.destroy();
});

const reprDigest = (sample: Sample): string =>
  `sha-256=:${Buffer.from(sample.sha256, "hex").toString("base64")}:`;

/** Seconds of processor time that a process has used. https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html */
function processorSeconds(pid: number): number {
  const [, fields = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
  const [user, system] = fields.split(" ").slice(11, 13).map(Number);
  // Ticks of 10 ms on every Linux.
  return ((user ?? Number.NaN) + (system ?? Number.NaN)) / 100;
}

function openSockets(pid: number): number {
  const folder = `/proc/${pid}/fd`;
  const targets = readdirSync(folder).map((fd) => {
    try {
      return readlinkSync(`${folder}/${fd}`);
    } catch {
      return "";
    }
  });
  return targets.filter((target) => target.startsWith("socket:")).length;
}

/** Headers and half of the body on a bare socket, and then silence. */
function stall(url: string, sample: Sample): Promise<Socket> {
  const socket = connectSocket(running.server.port, "127.0.0.1");
  sockets.push(socket);
  socket.on("error", () => {});
  socket.resume();
  const lines = Object.entries(patchHeaders(0, sample.sizeBytes)).map(([name, value]) => `${name}: ${value}`);
  const head = [`PATCH ${new URL(url).pathname} HTTP/1.1`, `Host: 127.0.0.1`, ...lines, "", ""].join("\r\n");
  return new Promise((resolve) => {
    socket.write(head, "latin1");
    socket.write(sample.bytes(0, sent), () => resolve(socket));
  });
}

test("500 stalled uploads stop nobody, cost next to nothing, lose their lease to who comes, and keep what they had sent", async () => {
  const { server } = running;
  const { url } = running;
  const idle = (await memoryOf(server.pid)).now;
  const sample = new Sample("stalled", 2 * sent);
  const urls: string[] = [];
  for (let made = 0; made < count; made += 50)
    urls.push(...(await Promise.all(Array.from({ length: 50 }, () => tusCreated(url, sample.sizeBytes)))));
  await Promise.all(urls.map((target) => stall(target, sample)));

  // Others are served meanwhile.
  const free = new Sample("flows", 16 << 20);
  const since = performance.now();
  const target = await tusCreated(url, free.sizeBytes);
  const upload = await tusPatch(target, 0, free.stream(), { "Content-Length": String(free.sizeBytes) });
  expect([upload.status, upload.headers["repr-digest"]]).toEqual([204, reprDigest(free)]);
  const client = await connect("a client of 2026-07-28", server.mcpUrl);
  const handle = upload.headers["longshore-handle"];
  const { url: download } = await facts(client, "file_download", { handle });
  expect((await http("GET", String(download))).body.equals(free.bytes())).toBe(true);
  expect(performance.now() - since).toBeLessThan(15_000);

  // Once the checkpoints of all of them are done (the tool disturbs no writer), there is nothing left to do but to wait.
  const status = { status: "receiving", limit: 30 };
  await waitUntil(async () => {
    const { files } = await facts(client, "file_list", status);
    return (files as { offset: number }[]).every(({ offset }) => offset === sent);
  });
  await waitUntil(async () => {
    const used = processorSeconds(server.pid);
    await new Promise((resolve) => setTimeout(resolve, 500));
    return processorSeconds(server.pid) - used < 0.1;
  });
  const used = processorSeconds(server.pid);
  await new Promise((resolve) => setTimeout(resolve, 3000));
  // A core that spins would have used 3.
  expect(processorSeconds(server.pid) - used).toBeLessThan(0.6);
  expect((await memoryOf(server.pid)).now - idle).toBeLessThan(250 << 20);
  expect(sockets.filter(({ destroyed }) => destroyed)).toEqual([]);

  // A stalled writer gives way at once: it has been silent for longer than 2 s.
  const taken = String(urls[250]);
  const rest = await tusPatch(taken, sent, sample.bytes(sent));
  expect([rest.status, rest.headers["repr-digest"]]).toEqual([204, reprDigest(sample)]);

  for (const socket of sockets) socket.destroy();
  const heads = await Promise.all(urls.filter((one) => one !== taken).map((one) => tusHead(one)));
  expect(new Set(heads.map((head) => `${head.status} ${offsetOf(head)}`))).toEqual(new Set([`200 ${sent}`]));
  await waitUntil(() => openSockets(server.pid) < 20);
});
