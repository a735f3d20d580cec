/** The list of tools is one and the same for all: both eras, every request, whatever its client declares. */
import { expect, test } from "vitest";
import { legacy, modern, tasksExtension } from "../support/mcp-requests.ts";
import { startMcpServer } from "../support/mcp-server.ts";
import { jobTools } from "../support/task-jobs.ts";

test("the tools are the same for both eras and all requests, apart from execution in 2025-11-25", async () => {
  const { url } = await startMcpServer({
    endpoint: {
      moreTools: jobTools,
      principalOf: (request) => request.headers.get("x-principal") ?? "me",
    },
  });
  const capabilities = [{}, tasksExtension, { ...tasksExtension, elicitation: {}, sampling: {} }];
  const lists = [
    ...(await Promise.all(capabilities.map((one) => modern(url, "tools/list", {}, one)))),
    await modern(url, "tools/list", {}, {}, { "X-Principal": "somebody else" }),
    await legacy(url, "tools/list"),
    await legacy(url, "tools/list", {}, { "MCP-Protocol-Version": "2025-03-26" }),
  ].map(({ result }) =>
    result.tools.map(({ execution: _execution, ...tool }: { execution?: unknown }) => tool),
  );
  expect(lists[0]).toHaveLength(12 + jobTools.length);
  for (const list of lists.slice(1)) expect(list).toEqual(lists[0]);
});
