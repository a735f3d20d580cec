/** `longshore tasks` and `task ID` over a server with tasks of its own. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { run } from "../support/built-server.ts";
import { tempDir } from "../support/temp-dir.ts";

const program = fileURLToPath(new URL("./programs/embedded-server.ts", import.meta.url));

async function startServer(): Promise<string> {
  const child = spawn(process.execPath, [program, "v2", "http", await tempDir()], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  onTestFinished(async () => {
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    await exited;
  });
  for await (const line of createInterface({ input: child.stdout })) return line;
  throw new Error("the server ended without a word");
}

async function call(mcpUrl: string, name: string, args: object): Promise<Record<string, unknown>> {
  const response = await fetch(mcpUrl, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } }),
  });
  const text = await response.text();
  const [, data = text] = /^data: (.*)$/m.exec(text) ?? [];
  return (JSON.parse(data) as { result: { structuredContent: Record<string, unknown> } }).result
    .structuredContent;
}

test("a task is listed, followed, answered and cancelled from the command line, and the status tells how it ended", async () => {
  const mcpUrl = await startServer();
  // The MCP URL is taken for the server's, too.
  const env = { LONGSHORE_URL: mcpUrl };
  expect((await run(["tasks"], { env })).stderr).toContain("There are no tasks.");

  const { upload, handle } = await call(mcpUrl, "upload_create", { filename: "a", size: 2 });
  await fetch((upload as { put: string }).put, { method: "PUT", body: "a\n" });
  const report = String((await call(mcpUrl, "write-report", { handle })).taskId);
  const endless = String((await call(mcpUrl, "wait-for-ever", {})).taskId);

  const asked = await run(["task", report], { env });
  expect(asked.status).toBe(3);
  expect(asked.stdout).toBe("Write it?\nChoices: yes, no\n");
  expect(asked.stderr).toContain(`longshore task ${report} --respond ANSWER`);
  const listed = await run(["tasks"], { env });
  expect(listed.stdout).toMatch(new RegExp(`^${report}  input_required  write-report  Write it\\?$`, "m"));

  const answered = await run(["task", report, "--respond", "yes", "--json"], { env });
  expect(answered.status).toBe(0);
  expect(JSON.parse(answered.stdout)).toMatchObject({ status: "completed", result: { copies: 2 } });
  const again = await run(["task", report, "--respond", "no"], { env });
  expect([again.status, again.stdout]).toEqual([1, ""]);

  const cancelled = await run(["task", endless, "--cancel"], { env });
  expect([cancelled.status, cancelled.stdout]).toEqual([1, ""]);
  expect(cancelled.stderr).toContain("cancelled");
  expect((await run(["task", "task_nothing", "--json"], { env })).stdout).toContain("unknown_task");
});
