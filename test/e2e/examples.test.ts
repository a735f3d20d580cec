/** The examples, started as their pages say and driven by real clients. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Client as ClientV2, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { describe, expect, onTestFinished, test } from "vitest";
import { upload } from "../../src/client/index.ts";
import { cleanEnv } from "../support/built-server.ts";
import { freePort } from "../support/free-port.ts";
import { useFolder } from "../support/server-process.ts";
import { waitUntil } from "../support/wait-until.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const folder = useFolder();
type Facts = Record<string, unknown>;

interface Host {
  readonly pid: number | null;
  stderr(): string;
  call(name: string, args?: Facts): Promise<Facts>;
  close(): Promise<void>;
}

async function startReportGenerator(command: string, args: readonly string[]): Promise<Host> {
  const transport = new StdioClientTransport({
    command,
    args: [...args],
    cwd: root,
    env: cleanEnv() as Record<string, string>,
    stderr: "pipe",
  });
  let text = "";
  transport.stderr?.on("data", (piece: Buffer) => {
    text += String(piece);
  });
  const client = new ClientV1({ name: "host", version: "1" });
  await client.connect(transport);
  onTestFinished(() => client.close());
  return {
    pid: transport.pid,
    stderr: () => text,
    close: () => client.close(),
    async call(name, given = {}) {
      const { structuredContent } = await client.callTool({ name, arguments: given });
      return (structuredContent ?? {}) as Facts;
    },
  };
}

const reportGenerator = (dataDir: string) =>
  startReportGenerator(process.execPath, ["examples/report-generator/main.ts", dataDir]);

async function follow({ call }: Host, taskId: unknown): Promise<Facts> {
  for (;;) {
    const facts = await call("durable_task_get", { taskId, waitMs: 20_000 });
    if (facts.status !== "working") return facts;
  }
}

describe("examples/report-generator", () => {
  test("starts with npm run example, asks in the middle, and stores a report that can be downloaded", async () => {
    const host = await startReportGenerator("npm", [
      ...["run", "--silent", "example", "--", path.join(folder.path, "report-1")],
    ]);
    const { taskId } = await host.call("generate-report", { topic: "tides", sections: 3 });
    const asked = await follow(host, taskId);
    expect(asked).toMatchObject({
      status: "input_required",
      progress: { message: "Section 2 of 3 is written", fraction: 0.5 },
      inputRequest: { choices: ["plain", "formal"] },
    });
    await host.call("durable_task_respond", { taskId, response: "formal" });
    const done = await follow(host, taskId);
    expect(done).toMatchObject({ status: "completed", result: { sections: 3, words: expect.any(Number) } });
    const { handle } = done.result as { handle: string };
    const { url } = await host.call("file_download", { handle });
    const report = await (await fetch(String(url))).text();
    expect(report).toMatch(/^# Report on tides/);
    expect(report.match(/plain tone/g)).toHaveLength(2);
    expect(report.match(/formal tone/g)).toHaveLength(1);
  });

  test("killed in the middle of a section and while it asks, goes on at the next start with nothing written twice", async () => {
    const dataDir = path.join(folder.path, "report-2");
    const lines: string[] = [];
    const killed = async (host: Host) => {
      process.kill(host.pid ?? -1, "SIGKILL");
      lines.push(...host.stderr().split("\n"));
      await host.close();
    };
    const first = await reportGenerator(dataDir);
    const { taskId } = await first.call("generate-report", { topic: "tides", sections: 6 });
    await waitUntil(() => first.stderr().includes("Writing section 2"));
    await killed(first);

    const second = await reportGenerator(dataDir);
    const asked = await follow(second, taskId);
    const { id } = asked.inputRequest as { id: string };
    await killed(second);

    const third = await reportGenerator(dataDir);
    expect(await follow(third, taskId)).toMatchObject({ status: "input_required", inputRequest: { id } });
    await third.call("durable_task_respond", { taskId, inputId: id, response: "plain" });
    await waitUntil(() => third.stderr().includes("Writing section 5"));
    await killed(third);

    const fourth = await reportGenerator(dataDir);
    const done = await follow(fourth, taskId);
    expect(done).toMatchObject({ status: "completed", result: { sections: 6 } });
    lines.push(...fourth.stderr().split("\n"));
    const times = [1, 2, 3, 4, 5, 6].map(
      (section) => lines.filter((line) => line === `Writing section ${section} on tides`).length,
    );
    expect(Math.min(...times)).toBe(1);
    // Two of the kills cut a section off, which is written once more.
    expect(times.reduce((sum, one) => sum + one)).toBeLessThanOrEqual(6 + 2);
  });
});

describe("examples/large-file-server", () => {
  async function startServer(): Promise<{
    client: ClientV2;
    child: ChildProcessWithoutNullStreams;
    mcpUrl: URL;
  }> {
    const port = String(await freePort());
    const dataDir = path.join(folder.path, `large-${port}`);
    const child = spawn(process.execPath, ["examples/large-file-server/main.ts", dataDir, port], {
      cwd: root,
      env: cleanEnv(),
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    let out = "";
    child.stdout.on("data", (piece: Buffer) => {
      out += String(piece);
    });
    await waitUntil(() => out.includes("MCP URL"));
    const client = new ClientV2({ name: "c", version: "1" }, { versionNegotiation: { mode: "auto" } });
    const mcpUrl = new URL(`http://127.0.0.1:${port}/mcp`);
    await client.connect(new StreamableHTTPClientTransport(mcpUrl));
    onTestFinished(() => client.close());
    return { client, child, mcpUrl };
  }

  test("its own tool takes the handle of an upload and reads the file", async () => {
    const { client, child } = await startServer();
    const call = async (name: string, args: Facts) => client.callTool({ name, arguments: args });
    const text = `${"x".repeat(99)}\n`.repeat(200_000) + "y".repeat(1_234);
    const created = await call("upload_create", { filename: "lines.txt", size: text.length });
    const { put } = (created.structuredContent as { upload: { put: string } }).upload;
    const { handle } = await upload(put, new Blob([text]));
    const counted = await call("line-statistics", { handle });
    expect(counted.content).toEqual([
      { type: "text", text: JSON.stringify({ lines: 200_001, longestLineBytes: 1_234 }) },
    ]);
    expect(await call("line-statistics", { handle: "./lines.txt" })).toMatchObject({
      isError: true,
      structuredContent: { error: { code: "client_path_not_reachable", repair: { tool: "upload_create" } } },
    });
    await client.close();
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
  });

  test("answers to nobody who came by another name", async () => {
    const { mcpUrl } = await startServer();
    const response = await fetch(mcpUrl, { method: "POST", headers: { Origin: "https://evil.example" } });
    expect(response.status).toBe(403);
  });
});
