/** The README says what is there, and its commands work as they stand. */
import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, globSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { durableTaskTools } from "../../src/mcp/tools/durable-task-tools.ts";
import { fileTaskTools } from "../../src/mcp/tools/file-task-tools.ts";
import { fileTools } from "../../src/mcp/tools/file-tools.ts";
import { settingNames, settings, variableOf } from "../../src/server/settings.ts";
import { cleanEnv, follow, run, startBuiltServer } from "../support/built-server.ts";
import { freePort } from "../support/free-port.ts";
import { codeBlocks, page, rows, section } from "../support/markdown.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitUntil } from "../support/wait-until.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const readme = page("README.md");

const quickStart = codeBlocks(section(readme, "## In 60 seconds"), "sh");

describe("the README", () => {
  test("lists every setting with its default, and no other", () => {
    const table = rows(section(readme, "## Settings")).map(([variable, shown]) => [variable, shown]);
    expect(table.sort()).toEqual(settingNames.map((name) => [variableOf(name), settings[name].shown]).sort());
  });

  test("lists every tool in the order of the server", () => {
    const table = rows(section(readme, "## Tools")).map(([tool]) => tool);
    expect(table).toEqual([...fileTools, ...fileTaskTools, ...durableTaskTools].map(({ name }) => name));
  });

  test("lists every command", async () => {
    const table = rows(section(readme, "## Command line")).map(([command]) => command);
    const { stdout } = await run(["--help"]);
    const commands = [...stdout.matchAll(/^ {2}(\w+) \[options\]/gm)].map(([, name]) => `longshore ${name}`);
    expect(table).toEqual(commands);
  });

  test("gives client configurations that are valid JSON and name the URL of a server as it starts", () => {
    const blocks = codeBlocks(section(readme, "## Connect an MCP client"), "json");
    expect(blocks).toHaveLength(3);
    for (const block of blocks)
      expect(JSON.stringify(JSON.parse(block))).toContain('"http://127.0.0.1:8484/mcp"');
  });

  test("has links that lead somewhere, as every other page", () => {
    const pages = ["*.md", "docs/**/*.md", "storage/*.md"].flatMap((pattern) =>
      globSync(pattern, { cwd: root }),
    );
    const broken = pages.flatMap((file) =>
      [...page(file).matchAll(/\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)/g)]
        .map(([, target = ""]) => target)
        .filter((target) => !existsSync(path.join(root, path.dirname(file), target)))
        .map((target) => `${file}: ${target}`),
    );
    expect(broken).toEqual([]);
  });
});

describe("in 60 seconds", () => {
  test("the first command starts the server where the README says", async () => {
    expect(quickStart[0]).toBe("npm ci && npm start\n");
    const port = await freePort();
    // Installed it is already; the port and the folder are this test's own.
    const server = follow(
      spawn("npm", ["start"], {
        cwd: root,
        env: cleanEnv({
          LONGSHORE_PORT: String(port),
          LONGSHORE_DATA_DIR: await tempDir(),
          LONGSHORE_MIN_FREE_BYTES: "0",
        }),
        stdio: ["ignore", "pipe", "pipe"],
        detached: true,
      }),
    );
    try {
      await waitUntil(() => server.stdout().includes("Ctrl+C"), 60_000);
      expect(server.stdout()).toContain(`MCP URL      http://127.0.0.1:${port}/mcp`);
      expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200);
    } finally {
      // npm and the server it started, as Ctrl+C in a terminal would.
      process.kill(-server.pid, "SIGINT");
      await server.exit;
    }
  });

  test("the second paste breaks off an upload, resumes it and ends with the sha256 of the file", async () => {
    const server = await startBuiltServer(await tempDir());
    const folder = await tempDir();
    // Another port and folder; everything else as it stands.
    const paste = (quickStart[1] ?? "").replaceAll("127.0.0.1:8484", `127.0.0.1:${server.port}`);
    expect(paste).toContain("/tmp/sample.bin");
    const { stdout, stderr } = await promisify(execFile)(
      "bash",
      ["-c", paste.replaceAll("/tmp/", `${folder}/`)],
      {
        cwd: folder,
      },
    );
    const sample = path.join(folder, "sample.bin");
    const sha256 = createHash("sha256").update(readFileSync(sample)).digest("hex");
    rmSync(sample);
    const offset = Number(/The server has (\d+) bytes\./.exec(stdout)?.[1]);
    expect(stderr).toContain("curl: (28)");
    expect(offset).toBeGreaterThan(0);
    expect(offset).toBeLessThan(67_108_864);
    const [, answer = ""] = /^(\{.*\})$/m.exec(stdout) ?? [];
    expect(JSON.parse(answer)).toMatchObject({ status: "complete", size: 67_108_864, sha256 });
    expect(stdout).toContain(`${sha256}  ${sample}`);
  });
});
