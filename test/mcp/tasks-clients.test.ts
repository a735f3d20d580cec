/** Every kind of client drives a task to completion, through a question, to a failure and to a cancel, over HTTP. */
import {
  Client as ClientV2,
  StreamableHTTPClientTransport as TransportV2,
} from "@modelcontextprotocol/client";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as TransportV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { describe, expect, onTestFinished, test } from "vitest";
import { startMcpServer } from "../support/mcp-server.ts";
import {
  coreDriver,
  extensionCapabilities,
  extensionDriver,
  facadeDriver,
  httpDispatch,
  type TaskDriver,
} from "../support/task-drivers.ts";
import { jobKinds, jobTools } from "../support/task-jobs.ts";

async function clientV1(url: string): Promise<ClientV1> {
  const client = new ClientV1({ name: "test", version: "1" });
  const transport = new TransportV1(new URL(url));
  // The v1 types are not written for exactOptionalPropertyTypes.
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  onTestFinished(() => client.close());
  await client.listTools();
  return client;
}

async function clientV2(url: string, capabilities: object = {}): Promise<ClientV2> {
  const options = { capabilities, versionNegotiation: { mode: "auto" } } as const;
  const client = new ClientV2({ name: "test", version: "1" }, options);
  await client.connect(new TransportV2(new URL(url)));
  onTestFinished(() => client.close());
  await client.listTools();
  return client;
}

const drivers: readonly (readonly [
  string,
  (url: string) => Promise<TaskDriver>,
  "extension" | "core" | "facade",
])[] = [
  ["the v1 client with the tools", async (url) => facadeDriver(await clientV1(url)), "facade"],
  ["the v1 client with core tasks", async (url) => coreDriver(await clientV1(url)), "core"],
  ["the v2 client without the extension", async (url) => facadeDriver(await clientV2(url)), "facade"],
  [
    "the v2 client with ext-tasks",
    async (url) => extensionDriver(await clientV2(url, extensionCapabilities), httpDispatch(url)),
    "extension",
  ],
];

describe.each(drivers)("%s", (_name, driverFor, face) => {
  const open = async (): Promise<TaskDriver> => {
    const { url } = await startMcpServer({ endpoint: { moreTools: jobTools }, kinds: jobKinds });
    return driverFor(url);
  };

  test("drives a task to completion", async () => {
    const driver = await open();
    const { status, result } = await driver.run("job_count", { to: 3 });
    expect(status).toBe("completed");
    expect(result?.isError ?? false).toBe(false);
    expect(result?.structuredContent).toMatchObject({
      taskId: expect.stringMatching(/^task_/),
      status: "completed",
      result: { sum: 6 },
      progress: { message: "Added 3", fraction: 1 },
      expiresAt: expect.any(String),
      nextStep: expect.any(String),
    });
    const [first] = (result?.content ?? []) as { text: string }[];
    expect(JSON.parse(first?.text ?? "")).toEqual(result?.structuredContent);
  });

  test("drives a task through a question", async () => {
    const driver = await open();
    const { status, result } = await driver.run("job_ask", {}, "yes");
    expect(status).toBe("completed");
    expect(result?.structuredContent).toMatchObject({ status: "completed", result: { answer: "yes" } });
  });

  test("sees a job fail in the job's own words", async () => {
    const driver = await open();
    const { status, result } = await driver.run("job_fail", {});
    expect(status).toBe(face === "extension" ? "completed" : "failed");
    // The tool that was asked how the task stands has not failed itself.
    expect(result?.isError ?? false).toBe(face !== "facade");
    expect(result?.structuredContent).toMatchObject({
      status: "failed",
      error: { code: "task_failed", message: "The job has failed in its own words." },
    });
  });

  test("cancels a task", async () => {
    const driver = await open();
    const { status, result } = await driver.cancel("job_wait", {});
    expect(status).toBe("cancelled");
    if (face !== "extension") expect(result?.structuredContent).toMatchObject({ status: "cancelled" });
  });
});
