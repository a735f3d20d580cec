/** Whatever a model or a program sends as arguments, it gets a result or a JSON-RPC refusal of the call, never a fault of the server. */
import { expect, test } from "vitest";
import { fileTools } from "../../src/mcp/tools/file-tools.ts";
import { startMcpServer } from "../support/mcp-server.ts";

/** A small generator with a seed, so that a failure can be run again. */
function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const strange: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e308,
  -0,
  Number.MAX_SAFE_INTEGER,
  2 ** 53,
  "",
  " ",
  "\u0000",
  "\ud800",
  "😀",
  "__proto__",
  "../../etc/passwd",
  "A".repeat(70_000),
  "aGVsbG8=",
  `fh_${"a".repeat(32)}`,
  "complete",
  "base64",
  [],
  {},
  [[[[[]]]]],
  { toString: 1, valueOf: null, constructor: {}, __proto__: 1 },
  "%{jndi:ldap://x}",
  "'; DROP TABLE uploads; --",
  "2026-07-28T00:00:00Z",
];

/** Parsed JSON may have a member of this name, which an object literal cannot. */
const withProto = '{"__proto__":{"offset":0},"constructor":{"prototype":1},"handle":"fh_x"}';

test("strange arguments to every tool give results or refusals, and nothing is logged as a fault", async () => {
  const { url, events, engine } = await startMcpServer();
  const { transfer } = await engine.create("local", {
    filename: "a",
    contentType: null,
    metadata: null,
    sizeBytes: 100,
    sha256: null,
    idempotencyKey: null,
  });
  const pick = generator(20_260_728);
  const values = [...strange, transfer.handle, transfer.handle, transfer.handle, 5, 5];

  async function send(name: string, args: string): Promise<void> {
    const response = await fetch(url, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        Accept: "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
      },
      body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${args},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
    });
    const what = `${name} ${args.slice(0, 300)}`;
    expect(response.status, what).toBeLessThan(500);
    const answer = (await response.json()) as {
      error?: { code: number };
      result?: {
        isError?: boolean;
        content: { text: string }[];
        structuredContent: { error?: { code: string } };
      };
    };
    expect(answer.error?.code, what).not.toBe(-32603);
    if (answer.result === undefined) return;
    expect(JSON.parse(answer.result.content[0]?.text ?? ""), what).toEqual(answer.result.structuredContent);
    expect(answer.result.structuredContent.error?.code, what).not.toBe("internal_error");
  }

  for (const { name, inputSchema } of fileTools) {
    const known = Object.keys(inputSchema.shape);
    await send(name, withProto);
    await send(name, "{}");
    for (let round = 0; round < 120; round += 1) {
      const args: Record<string, unknown> = {};
      for (const argument of known) if (pick(4) > 0) args[argument] = values[pick(values.length)];
      if (pick(5) === 0) args["strange key\n"] = 1;
      // Waiting is tried elsewhere; here it would only take time.
      if (typeof args.waitMs === "number" && args.waitMs > 10) args.waitMs = 10;
      await send(name, JSON.stringify(args));
    }
    await send(name, `{"handle":${"[".repeat(20_000)}${"]".repeat(20_000)}}`);
    await send(name, `{${Array.from({ length: 5000 }, (_, index) => `"k${index}":1`).join(",")}}`);
  }
  expect(events.filter(({ level }) => level === "error" || level === "warn")).toEqual([]);
});
